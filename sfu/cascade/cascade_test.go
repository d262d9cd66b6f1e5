package cascade

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the limit of every wait: generous, because the machine is shared.
const patience = 60 * time.Second

var (
	vp8  = forward.Codec{MimeType: "video/VP8", ClockRate: 90000, PayloadType: 96, RTXPayloadType: 97}
	opus = forward.Codec{MimeType: "audio/opus", ClockRate: 48000, PayloadType: 111}
)

// half is one media node with its half of the room.
type half struct {
	t      *testing.T
	socket *egress.Conn
	media  *transport.Transport
	at     netip.AddrPort
	room   *forward.Room
	trunk  *Trunk
	conn   *transport.Conn
	link   *Link
	wire   *wire
}

// wire counts what the trunk brings.
type wire struct {
	*Trunk

	mu      sync.Mutex
	packets map[uint32]int // by SSRC
}

// RTP is part of transport.Handler.
func (w *wire) RTP(header *rtp.Header, packet []byte, arrived time.Time) {
	w.mu.Lock()
	w.packets[header.SSRC]++
	w.mu.Unlock()
	w.Trunk.RTP(header, packet, arrived)
}

// lossy is a media socket that loses one of so many packets of media.
type lossy struct {
	*egress.Conn

	lose uint64
	seen atomic.Uint64
}

// Receive is part of transport.Socket.
func (l *lossy) Receive(reader int, take func([]byte, egress.Address), dropped func(egress.Address)) error {
	return l.Conn.Receive(reader, func(b []byte, from egress.Address) {
		// RFC 7983 and RFC 5761.
		media := len(b) > 1 && b[0] >= 128 && b[0] < 192 && (b[1] < 192 || b[1] > 223)
		if media && l.seen.Add(1)%l.lose == 0 {
			return
		}
		take(b, from)
	}, dropped)
}

func (w *wire) brought(ssrc uint32) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.packets[ssrc]
}

func newHalf(t *testing.T, lose uint64) *half {
	t.Helper()
	bound, err := egress.Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, 2)
	if err != nil {
		t.Fatal(err)
	}
	h := &half{t: t, socket: egress.New(egress.Options{Gather: true, Segment: true}, bound...), trunk: newTrunk()}
	h.at = bound[0].LocalAddr().(*net.UDPAddr).AddrPort()
	h.media = transport.New(&lossy{Conn: h.socket, lose: lose}, panics.New(), slog.New(slog.DiscardHandler))
	batch := h.socket.NewBatch()
	h.room = forward.NewRoom(forward.Config{Batchers: []forward.Batcher{batch}}, slog.New(slog.DiscardHandler))
	h.wire = &wire{Trunk: h.trunk, packets: map[uint32]int{}}
	h.link = NewLink(LinkConfig{Room: h.room, Trunk: h.trunk, Batch: batch, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = h.media.Run(ctx) })
	ended.Go(func() { _ = h.room.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = h.socket.Close()
		ended.Wait()
	})
	return h
}

func (h *half) open(keys transport.Keys) {
	h.t.Helper()
	var err error
	h.conn, err = h.media.Open(transport.Config{Handler: h.wire, Owner: "the other node", Keys: keys, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.conn.Close)
	h.trunk.use(h.conn)
}

// twoHalves are two nodes with the halves of one room, joined. cut ends the link.
func twoHalves(t *testing.T, lose uint64) (a, b *half, cut func()) {
	t.Helper()
	a, b = newHalf(t, lose), newHalf(t, lose)
	ours, theirs := transport.NewKeys()
	a.open(ours)
	b.open(theirs)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	cut = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(cut)
	dial, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for _, err := range []error{a.conn.Dial(dial, b.at, b.conn.Credentials()), b.conn.Dial(dial, a.at, a.conn.Credentials())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[*half]*half{a: b, b: a} {
		running.Go(func() {
			if err := from.link.Run(ctx, func(m *control.LinkMessage) error { to.link.Take(m); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	return a, b, cut
}

// publisher sends a picture in three layers, and sound, until it is closed. It answers requests for keyframes.
type publisher struct {
	half  *half
	sent  [3]atomic.Int64 // packets of each layer
	asked [3]atomic.Int64
}

// packetsOf are the packets of a frame of each layer.
var packetsOf = [3]int{1, 3, 10}

func (h *half) publish(peer forward.PeerID) *publisher {
	h.t.Helper()
	p := &publisher{half: h}
	var layers []*forward.Layer
	for i, rid := range []string{"q", "h", "f"} {
		layers = append(layers, h.room.AddLayer(forward.LayerConfig{
			Peer: peer, Source: forward.SourceCamera, Kind: forward.KindVideo, RID: rid, Codec: vp8, SendPLI: func() { p.asked[i].Add(1) },
		}))
	}
	voice := h.room.AddLayer(forward.LayerConfig{Peer: peer, Source: forward.SourceMicrophone, Kind: forward.KindAudio, Codec: opus})
	end := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var answered [3]int64
		for n := uint16(0); ; n++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			h.push(voice, rtp.Header{Version: 2, PayloadType: opus.PayloadType, SequenceNumber: n, Timestamp: 960 * uint32(n), SSRC: 9}, []byte("sound"))
			if n%2 == 0 {
				continue
			}
			for i, l := range layers {
				asked := p.asked[i].Load()
				p.picture(l, i, n/2, asked > answered[i])
				answered[i] = asked
			}
		}
	})
	h.t.Cleanup(sync.OnceFunc(func() { close(end); sending.Wait() }))
	return p
}

func (p *publisher) picture(l *forward.Layer, layer int, number uint16, keyframe bool) {
	height := 180 << layer
	count := packetsOf[layer]
	for i := range count {
		b := []byte{0x80, 0xC0, 0x80 | byte(number>>8), byte(number), byte(number)}
		if i == 0 {
			b[0] |= 0x10
			frame := []byte{1, 0, 0}
			if keyframe {
				frame = []byte{0, 0, 0, 0x9D, 1, 0x2A, byte(height * 16 / 9), byte(height * 16 / 9 >> 8), byte(height), byte(height >> 8)}
			}
			b = append(b, frame...)
		}
		b = append(b, make([]byte, 1000-len(b))...)
		p.half.push(l, rtp.Header{
			Version: 2, Marker: i == count-1, PayloadType: vp8.PayloadType, SequenceNumber: number*uint16(count) + uint16(i), Timestamp: 3600 * uint32(number), SSRC: 1,
		}, b)
		p.sent[layer].Add(1)
	}
}

func (h *half) push(l *forward.Layer, header rtp.Header, payload []byte) {
	raw, err := (&rtp.Packet{Header: header, Payload: payload}).Marshal()
	if err != nil {
		h.t.Error(err)
	}
	p := h.room.GetPacket()
	p.SetLength(copy(p.Buffer(), raw))
	l.Push(p)
}

// viewer has one slot.
type viewer struct {
	mu      sync.Mutex
	packets []rtp.Packet
	height  int
}

// WriteRTP is part of forward.PacketWriter.
func (v *viewer) WriteRTP(header *rtp.Header, payload []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.packets = append(v.packets, rtp.Packet{Header: header.Clone(), Payload: slices.Clone(payload)})
	if len(payload) > 15 && payload[0]&0x10 != 0 && payload[5]&1 == 0 {
		v.height = int(payload[13]) | int(payload[14])<<8
	}
	return len(payload), nil
}

func (v *viewer) shown() (height, packets int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.height, len(v.packets)
}

func (v *viewer) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.packets = nil
}

// whole reports whether the packets are whole pictures in order, apart from what is still on its way.
func (v *viewer) whole() string {
	v.mu.Lock()
	packets := slices.Clone(v.packets)
	v.mu.Unlock()
	slices.SortFunc(packets, func(a, b rtp.Packet) int { return int(int16(a.SequenceNumber - b.SequenceNumber)) })
	for i := 1; i < len(packets)-3*packetsOf[2]; i++ {
		a, b := &packets[i-1], &packets[i]
		if b.SequenceNumber != a.SequenceNumber+1 {
			return "packet " + strconv.Itoa(int(b.SequenceNumber)) + " comes after " + strconv.Itoa(int(a.SequenceNumber))
		}
		if same := a.Payload[3] == b.Payload[3]; same != (a.Timestamp == b.Timestamp) || same == a.Marker {
			return "packet " + strconv.Itoa(int(b.SequenceNumber)) + " is of two pictures"
		}
	}
	return ""
}

func (h *half) view(peer, of forward.PeerID, kind forward.Kind, height int) *viewer {
	v := &viewer{}
	codec := vp8
	if kind == forward.KindAudio {
		codec = opus
	}
	s := h.room.AddSlot(forward.SlotConfig{Peer: peer, Mid: string(kind), Kind: kind, Writer: v, SSRC: 4711, RTXSSRC: 4712, Codecs: []forward.Codec{codec}})
	s.Ready()
	if kind == forward.KindVideo {
		h.show(peer, of, height)
	}
	return v
}

func (h *half) show(peer, of forward.PeerID, height int) {
	h.room.SetView(peer, []forward.Want{{Peer: of, Source: forward.SourceCamera, Width: height * 16 / 9, Height: height}})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	limit := time.After(patience)
	for !is() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%s: never", what)
		}
	}
}

// TestARoomOfTwoHalves: people at both nodes see and hear each other, over a link that loses packets. A layer crosses once, and only while
// it is wanted.
func TestARoomOfTwoHalves(t *testing.T) {
	a, b, cut := twoHalves(t, 60)
	alice, bob := a.publish("alice"), b.publish("bob")
	small := b.view("1", "alice", forward.KindVideo, 180)
	large := b.view("2", "alice", forward.KindVideo, 720)
	back := a.view("3", "bob", forward.KindVideo, 180)
	hears := b.view("4", "", forward.KindAudio, 0)
	var crowd []*viewer
	for i := range 20 {
		crowd = append(crowd, b.view(forward.PeerID(strconv.Itoa(10+i)), "alice", forward.KindVideo, 180))
	}
	eventually(t, "all are shown what they asked for", func() bool {
		for v, want := range map[*viewer]int{small: 180, large: 720, back: 180} {
			if height, packets := v.shown(); height != want || packets < 10 {
				return false
			}
		}
		_, heard := hears.shown()
		return heard > 10 && !slices.ContainsFunc(crowd, func(v *viewer) bool { height, _ := v.shown(); return height != 180 })
	})
	// alice's layers are the first of her node: the lowest crosses for 21 viewers, the middle one for nobody.
	low, high := b.wire.brought(1), b.wire.brought(3)
	if sent := int(alice.sent[0].Load()); low > sent+sent/4+10 || low == 0 {
		t.Errorf("%d packets of the lowest layer crossed, %d were sent", low, sent)
	}
	if high == 0 || high > int(alice.sent[2].Load())*5/4+10 {
		t.Errorf("%d packets of the highest layer crossed, %d were sent", high, alice.sent[2].Load())
	}
	// On a machine that pauses for longer than a layer may be silent, the largest picture is the middle one for a while.
	eventually(t, "a layer that nobody wants does not cross", func() bool {
		for _, v := range append(crowd, small, large, back) {
			v.forget()
		}
		middle := b.wire.brought(2)
		eventually(t, "some time passes", func() bool { _, packets := large.shown(); return packets > 300 })
		return b.wire.brought(2) == middle
	})
	for i, v := range append(crowd, small, large, back) {
		if wrong := v.whole(); wrong != "" {
			t.Errorf("viewer %d: %s", i, wrong)
		}
	}
	b.show("1", "alice", 360)
	eventually(t, "a page that grew is shown more", func() bool { height, _ := small.shown(); return height == 360 })

	if asked := bob.asked[0].Load(); asked == 0 || asked > 20 {
		t.Errorf("bob was asked for %d keyframes", asked)
	}
	for i := range 30 {
		b.room.RemovePeer(forward.PeerID(strconv.Itoa(i)))
	}
	eventually(t, "nothing of alice's picture crosses any more", func() bool {
		before := b.wire.brought(1) + b.wire.brought(2) + b.wire.brought(3)
		sent := alice.sent[0].Load()
		eventually(t, "alice goes on", func() bool { return alice.sent[0].Load() > sent+10 })
		return b.wire.brought(1)+b.wire.brought(2)+b.wire.brought(3) == before
	})
	cut()
	eventually(t, "bob is gone from the other half", func() bool {
		return !slices.ContainsFunc(a.room.Table("3"), func(e forward.Entry) bool { return e.Peer == "bob" && !e.Paused })
	})
}
