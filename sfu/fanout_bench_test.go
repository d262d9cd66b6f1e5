package sfu

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// One publisher, 30 frames a second of six packets of 1,100 bytes: 1.6 Mbit/s.
const (
	fanOutFrames  = 30
	fanOutBurst   = 6
	fanOutPayload = 1100 - 12
	fanOutWarmUp  = 1200 * time.Millisecond // the estimates of the paths have begun
	fanOutTime    = 2 * time.Second         // measured
)

// BenchmarkFanOut is what one publisher's packets cost the node for each subscriber they are sent to: the transports, forwarding and
// egress of a node, over real sockets. The subscribers are in another process; the figures are this one's alone. What comes in
// costs nothing here: packets are handed to the room. Cases: a frame's packets at once, or 1 ms apart; AES-128-GCM, or the older
// profile; with transport-wide feedback, or without.
func BenchmarkFanOut(b *testing.B) {
	const gcm, cm = dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80
	for _, subscribers := range []int{20, 50, 100, 200} {
		for _, c := range []struct {
			name  string
			apart time.Duration
			kind  subscriberKind
		}{
			{"burst", 0, subscriberKind{Profile: gcm, Feedback: true, Video: 1}},
			{"paced", time.Millisecond, subscriberKind{Profile: gcm, Feedback: true, Video: 1}},
			{"burst-nofeedback", 0, subscriberKind{Profile: gcm, Video: 1}},
			{"paced-nofeedback", time.Millisecond, subscriberKind{Profile: gcm, Video: 1}},
			{"burst-cm80", 0, subscriberKind{Profile: cm, Feedback: true, Video: 1}},
		} {
			b.Run(fmt.Sprintf("%s/subscribers=%d", c.name, subscribers), func(b *testing.B) { measureFanOut(b, subscribers, c.apart, c.kind) })
		}
	}
}

// BenchmarkSubscriber is the memory of one subscriber with the page's 6 slots of sound and 16 of pictures, all silent.
func BenchmarkSubscriber(b *testing.B) {
	const subscribers = 40
	r := startReceiver(b)
	s := newStage(b, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	cfg := s.looseConfig()
	before, goroutines := rss(b), runtime.NumGoroutine()
	for range subscribers {
		subscribe(b, s, cfg, r, subscriberKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true, Audio: 6, Video: 16})
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(rss(b)-before)/subscribers/1e3, "KB/subscriber")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/subscribers, "goroutines/subscriber")
}

// rss is the resident memory of this process in bytes, after a collection.
func rss(b *testing.B) int64 {
	b.Helper()
	runtime.GC()
	runtime.GC() // what the first one put aside (sync.Pool) goes with the second
	text, err := os.ReadFile("/proc/self/statm")
	must(b, err)
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	must(b, err)
	return resident * int64(os.Getpagesize())
}

// subscribe connects a subscriber to a room.
func subscribe(b *testing.B, s *stage, cfg connectionConfig, r *receiver, kind subscriberKind) {
	b.Helper()
	var sdp string
	r.ask(b, request{Offer: &kind}, &sdp)
	o, err := offer.Read(sdp, offerLimits(s.node.cfg.Limits))
	must(b, err)
	connected := make(chan struct{})
	cfg.onState = func(_ *connection, state control.TransportState) {
		if state == control.TransportState_TRANSPORT_STATE_CONNECTED {
			close(connected)
		}
	}
	cfg.candidates, err = s.node.candidates()
	must(b, err)
	cfg.compatible = kind.Profile != dtls.SRTP_AEAD_AES_128_GCM
	c, err := connect(s.node.transport, o, cfg)
	must(b, err)
	b.Cleanup(c.close)
	answer, err := c.answer(&control.Offer{Id: "1"}, o)
	must(b, err)
	var done int64
	r.ask(b, request{Answer: answer}, &done)
	<-connected
}

func measureFanOut(b *testing.B, subscribers int, apart time.Duration, kind subscriberKind) {
	r := startReceiver(b)
	s := newStage(b, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	cfg := s.looseConfig()
	room := cfg.room
	layer := room.AddLayer(forward.LayerConfig{
		Peer: "publisher", Source: forward.SourceCamera, Kind: forward.KindVideo,
		Codec: forward.Codec{MimeType: "video/VP8", ClockRate: 90000, PayloadType: 96},
	})
	for i := range subscribers {
		cfg.peer = forward.PeerID(fmt.Sprint(i))
		cfg.owner = fmt.Sprint(i)
		subscribe(b, s, cfg, r, kind)
	}
	packet := &rtp.Packet{
		Header:  rtp.Header{Version: 2, PayloadType: 96, SSRC: 1},
		Payload: []byte("\x10\x10\x02\x00\x9d\x01\x2a\x40\x01\xb4\x00" + strings.Repeat("x", fanOutPayload-11)), // a VP8 keyframe
	}
	send := func(d time.Duration) int {
		frames := int(d.Seconds() * fanOutFrames)
		ticker := time.NewTicker(time.Second / fanOutFrames)
		defer ticker.Stop()
		for range frames {
			<-ticker.C
			next := time.Now()
			for i := range fanOutBurst {
				packet.SequenceNumber++
				packet.Marker = i == fanOutBurst-1
				p := room.GetPacket()
				n, err := packet.MarshalTo(p.Buffer())
				must(b, err)
				p.SetLength(n)
				layer.Push(p)
				if next = next.Add(apart); apart > 0 {
					<-time.After(time.Until(next)) // the rhythm of a pacer
				}
			}
			packet.Timestamp += 90000 / fanOutFrames
		}
		return frames * fanOutBurst
	}
	warm := int64(send(fanOutWarmUp)) * int64(subscribers)
	received := r.settled(b, warm)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	sent := 0
	for range b.N {
		sent += send(fanOutTime)
	}
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	runtime.ReadMemStats(&after)
	forwarded := float64(sent * subscribers)
	received = r.settled(b, received+int64(forwarded)) - received
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(cpu.Nanoseconds())/forwarded, "cpu-ns/packet")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/forwarded, "allocs/packet")
	b.ReportMetric(100*float64(received)/forwarded, "%received")
	if stats := s.node.socket.Stats(); stats.Errors > 0 {
		b.Error(stats)
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
