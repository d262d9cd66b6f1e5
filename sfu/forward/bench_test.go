package forward

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// One publisher, 30 frames a second of four packets: 1.15 Mbit/s.
const (
	benchFrames  = 30
	benchBurst   = 4
	benchPayload = 1200 - 12
	benchWarmUp  = 1100            // packets: Pion's NACK responder then holds all it ever will
	benchTime    = 2 * time.Second // measured
)

// fanOut is one way of sending a packet to every subscriber.
type fanOut interface {
	connect(b *testing.B, r *receiver)
	push(b *testing.B, p *rtp.Packet)
	close(b *testing.B)
}

// BenchmarkForward compares this package with what Pion does by itself. The
// subscribers are in another process; the figures are this one's alone.
func BenchmarkForward(b *testing.B) {
	for _, subscribers := range []int{50, 200} {
		for _, way := range []struct {
			name string
			make func(b *testing.B) fanOut
		}{
			{"static-default-interceptors", func(b *testing.B) fanOut { return newStatic(b, true) }},
			{"static-no-interceptors", func(b *testing.B) fanOut { return newStatic(b, false) }},
			{"forward", func(b *testing.B) fanOut { return newForwarding(b, egress.Options{}, false) }},
			{"forward-numbered", func(b *testing.B) fanOut { return newForwarding(b, egress.Options{}, true) }},
			{"forward-gather", func(b *testing.B) fanOut { return newForwarding(b, egress.Options{Gather: true}, false) }},
			{"forward-gather-segment", func(b *testing.B) fanOut {
				return newForwarding(b, egress.Options{Gather: true, Segment: true}, false)
			}},
			{"forward-gather-segment-numbered", func(b *testing.B) fanOut {
				return newForwarding(b, egress.Options{Gather: true, Segment: true}, true)
			}},
		} {
			b.Run(fmt.Sprintf("%s/subscribers=%d", way.name, subscribers), func(b *testing.B) {
				measure(b, way.make(b), subscribers)
			})
		}
	}
}

func measure(b *testing.B, way fanOut, subscribers int) {
	r := startReceiver(b)
	heap := heapInUse()
	for range subscribers {
		way.connect(b, r)
	}
	packet := &rtp.Packet{
		Header:  rtp.Header{Version: 2, PayloadType: 96, SSRC: 1},
		Payload: vp8Payload(true, true, 1, 1, 360, 1, benchPayload),
	}
	frame := func() {
		for i := range benchBurst {
			packet.SequenceNumber++
			packet.Marker = i == benchBurst-1
			way.push(b, packet)
		}
		packet.Timestamp += 90000 / benchFrames
	}
	pace := func(frames, perSecond int) {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for range frames {
			<-ticker.C
			frame()
		}
	}
	pace(benchWarmUp/benchBurst, 4*benchFrames)
	memory := heapInUse() - heap
	received := r.settled(b, int64(benchWarmUp*subscribers))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	frames := int(benchTime/time.Second) * benchFrames * b.N
	pace(frames, benchFrames)
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	runtime.ReadMemStats(&after)
	forwarded := float64(frames * benchBurst * subscribers)
	received = r.settled(b, received+int64(forwarded)) - received
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(cpu.Nanoseconds())/forwarded, "cpu-ns/packet")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/forwarded, "allocs/packet")
	b.ReportMetric(float64(memory)/float64(subscribers)/1e6, "MB/subscriber")
	b.ReportMetric(100*float64(received)/forwarded, "%received")
	way.close(b)
	r.stop(b)
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what the first one put aside (sync.Pool) goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// static is the plain way: one TrackLocalStaticRTP added to every connection.
type static struct {
	api   *webrtc.API
	track *webrtc.TrackLocalStaticRTP
	peers connections
}

func newStatic(b *testing.B, interceptors bool) *static {
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	api, err := benchAPI(settings, interceptors)
	must(b, err)
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "v", "s")
	must(b, err)
	return &static{api: api, track: track}
}

func (s *static) connect(b *testing.B, r *receiver) { s.peers.add(b, s.api, s.track, r) }

func (s *static) push(b *testing.B, p *rtp.Packet) { must(b, s.track.WriteRTP(p)) }

func (s *static) close(b *testing.B) { s.peers.close(b) }

type connections []*webrtc.PeerConnection

func (c *connections) add(b *testing.B, api *webrtc.API, track webrtc.TrackLocal, r *receiver) {
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	must(b, err)
	sender, err := pc.AddTrack(track)
	must(b, err)
	go func() {
		buffer := make([]byte, packetCapacity)
		for {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	r.connect(b, pc)
	*c = append(*c, pc)
}

func (c connections) close(b *testing.B) {
	for _, pc := range c {
		must(b, pc.GracefulClose())
	}
}

// forwarding is this package, over one muxed socket as an SFU node has it.
type forwarding struct {
	api    *webrtc.API
	conn   *egress.Conn
	mux    *ice.UDPMuxDefault
	room   *Room
	layer  *Layer
	peers  connections
	cancel context.CancelFunc
	ended  chan error
	number bool // with transport-wide sequence numbers, as a node does
}

func newForwarding(b *testing.B, options egress.Options, number bool) *forwarding {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(b, err)
	conn := egress.NewWith(socket, options)
	f := &forwarding{conn: conn, mux: ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: conn}), ended: make(chan error, 1), number: number}
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICEUDPMux(f.mux)
	settings.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM)
	f.api, err = benchAPI(settings, false)
	must(b, err)
	f.room = NewRoom(Config{Batcher: conn}, slog.New(slog.DiscardHandler))
	f.layer = f.room.AddLayer(LayerConfig{Peer: "publisher", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() { f.ended <- f.room.Run(ctx) }()
	return f
}

func (f *forwarding) connect(b *testing.B, r *receiver) {
	track := &slotTrack{room: f.room, peer: PeerID(fmt.Sprint(len(f.peers)))}
	if f.number {
		track.path = bandwidth.NewPath(func(uint64) {})
	}
	f.peers.add(b, f.api, track, r)
	track.slot.Ready()
}

func (f *forwarding) push(b *testing.B, p *rtp.Packet) {
	packet := f.room.GetPacket()
	n, err := p.MarshalTo(packet.Buffer())
	must(b, err)
	packet.SetLength(n)
	f.layer.Push(packet)
}

func (f *forwarding) close(b *testing.B) {
	if s := f.room.Stats(); s.Drops.Total() != 0 {
		b.Error(s)
	}
	if s := f.conn.Stats(); s.Errors != 0 {
		b.Error(s)
	}
	f.cancel()
	must(b, <-f.ended)
	f.peers.close(b)
	must(b, f.mux.Close())
}

// slotTrack gives Pion a slot as a track.
type slotTrack struct {
	room *Room
	peer PeerID
	path Path
	slot *Slot
}

func (t *slotTrack) Bind(c webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	for _, codec := range c.CodecParameters() {
		if strings.EqualFold(codec.MimeType, webrtc.MimeTypeVP8) {
			t.slot = t.room.AddSlot(SlotConfig{
				Peer: t.peer, Mid: "0", Kind: KindVideo, Writer: c.WriteStream(), SSRC: uint32(c.SSRC()),
				Codecs: []Codec{{MimeType: codec.MimeType, PayloadType: uint8(codec.PayloadType)}},
				Path:   t.path, TransportSequenceID: 3,
			})
			return codec, nil
		}
	}
	return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
}

func (t *slotTrack) Unbind(webrtc.TrackLocalContext) error { return nil }
func (t *slotTrack) ID() string                            { return "v" }
func (t *slotTrack) StreamID() string                      { return "s" }
func (t *slotTrack) RID() string                           { return "" }
func (t *slotTrack) Kind() webrtc.RTPCodecType             { return webrtc.RTPCodecTypeVideo }
