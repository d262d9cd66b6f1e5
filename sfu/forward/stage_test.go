package forward

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// stage is a room with everything around it, in a synctest bubble.
type stage struct {
	t    *testing.T
	room *Room

	mu       sync.Mutex
	speakers []Speaker
	tables   int
}

var (
	vp8  = Codec{MimeType: "video/VP8", ClockRate: 90000, PayloadType: 96, RTXPayloadType: 97}
	opus = Codec{MimeType: "audio/opus", ClockRate: 48000, PayloadType: 111}
)

// onStage runs a scenario in a bubble and sees to it that the room ends.
func onStage(t *testing.T, cfg Config, scenario func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &stage{t: t}
		cfg.OnSlots = func(PeerID) {
			st.mu.Lock()
			st.tables++
			st.mu.Unlock()
		}
		cfg.OnSpeakers = func(s []Speaker) {
			st.mu.Lock()
			st.speakers = s
			st.mu.Unlock()
		}
		st.room = NewRoom(cfg, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- st.room.Run(ctx) }()
		scenario(st)
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	})
}

// pass lets time go by and everything settle.
func (st *stage) pass(d time.Duration) {
	<-time.After(d) // synthetic: the bubble's clock jumps
	synctest.Wait()
}

// camera is a synthetic publisher of one video layer.
type camera struct {
	st    *stage
	layer *Layer

	mu   sync.Mutex
	plis int

	sequence  uint16
	timestamp uint32
	pictureID uint16
	tl0       uint8
	height    int
}

func (st *stage) camera(peer PeerID, rid string, height int) *camera {
	c := &camera{st: st, sequence: uint16(1000 * len(peer)), timestamp: 77777, pictureID: 500, height: height}
	c.layer = st.room.AddLayer(LayerConfig{
		Peer: peer, Source: SourceCamera, Kind: KindVideo, RID: rid, Codec: vp8,
		SendPLI: func() { c.mu.Lock(); c.plis++; c.mu.Unlock() },
	})
	synctest.Wait()
	return c
}

func (c *camera) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plis
}

// vp8Payload builds a payload with a 15-bit picture id and a TL0PICIDX.
func vp8Payload(keyframe, first bool, pictureID uint16, tl0 uint8, height int, fill byte, size int) []byte {
	b := []byte{0x80, 0xC0, 0x80 | byte(pictureID>>8), byte(pictureID), tl0}
	if first {
		b[0] |= 0x10
		frame := []byte{1, 0, 0}
		if keyframe {
			frame = []byte{0, 0, 0, 0x9D, 1, 0x2A, byte(height * 16 / 9), byte(height * 16 / 9 >> 8), byte(height), byte(height >> 8)}
		}
		b = append(b, frame...)
	}
	for len(b) < size {
		b = append(b, fill)
	}
	return b
}

// frame sends one frame of n packets and lets 33 ms pass.
func (c *camera) frame(keyframe bool, n int) {
	c.send(keyframe, n, 100)
	c.st.pass(33 * time.Millisecond)
}

// burst sends one frame of n large packets.
func (c *camera) burst(keyframe bool, n int) { c.send(keyframe, n, 1000) }

func (c *camera) send(keyframe bool, n, size int) {
	for i := range n {
		payload := vp8Payload(keyframe, i == 0, c.pictureID, c.tl0, c.height, byte(c.sequence), size)
		c.st.push(c.layer, rtp.Header{
			Version: 2, Marker: i == n-1, PayloadType: vp8.PayloadType,
			SequenceNumber: c.sequence, Timestamp: c.timestamp, SSRC: 1,
		}, payload)
		c.sequence++
	}
	c.next()
}

func (c *camera) next() {
	c.timestamp += 2970
	c.pictureID++
	c.tl0++
}

func (st *stage) push(l *Layer, h rtp.Header, payload []byte) {
	st.t.Helper()
	p := st.room.GetPacket()
	raw, err := (&rtp.Packet{Header: h, Payload: payload}).Marshal()
	if err != nil {
		st.t.Fatal(err)
	}
	p.SetLength(copy(p.Buffer(), raw))
	l.Push(p)
}

// screenful is one subscriber's slot with what was written to it.
type screenful struct {
	slot *Slot

	mu      sync.Mutex
	packets []rtp.Packet
	sent    []rtp.Packet // all, as repeat knows them
	reports []*rtcp.SenderReport
	err     error
}

func (v *screenful) WriteRTP(h *rtp.Header, payload []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return 0, v.err
	}
	p := rtp.Packet{Header: h.Clone(), Payload: slices.Clone(payload)}
	v.packets, v.sent = append(v.packets, p), append(v.sent, p)
	return 12 + len(payload), nil
}

// repeat is a SlotConfig.Repeat.
func (v *screenful) repeat(sequence uint16) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range slices.Backward(v.sent) {
		if p.SSRC == v.slot.cfg.SSRC && p.SequenceNumber == sequence {
			v.packets = append(v.packets, p)
			return 12 + len(p.Payload), nil
		}
	}
	return 0, nil
}

// forget lets repeat find nothing of what was written so far.
func (v *screenful) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sent = nil
}

// take returns what was written since the last call.
func (v *screenful) take() []rtp.Packet {
	v.mu.Lock()
	defer v.mu.Unlock()
	packets := v.packets
	v.packets = nil
	return packets
}

// peek returns what was written and leaves it for take.
func (v *screenful) peek() []rtp.Packet {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.packets
}

func (v *screenful) takeReports() []*rtcp.SenderReport {
	v.mu.Lock()
	defer v.mu.Unlock()
	reports := v.reports
	v.reports = nil
	return reports
}

func (st *stage) slot(peer PeerID, mid string, kind Kind) *screenful {
	return st.slotIn(peer, mid, kind, 0)
}

func (st *stage) slotIn(peer PeerID, mid string, kind Kind, shard int) *screenful {
	v := &screenful{}
	cfg := SlotConfig{
		Peer: peer, Shard: shard, Mid: mid, Kind: kind, Writer: v, SSRC: 4711, RTXSSRC: 4712, Codecs: []Codec{vp8},
		WriteRTCP: func(packets []rtcp.Packet) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			for _, p := range packets {
				if sr, ok := p.(*rtcp.SenderReport); ok {
					v.reports = append(v.reports, sr)
				}
			}
			return nil
		},
	}
	if kind == KindAudio {
		cfg.Codecs, cfg.RTXSSRC = []Codec{opus}, 0
	}
	v.slot = st.room.AddSlot(cfg)
	synctest.Wait()
	return v
}

// shows fails the test unless the peer's video slots show these cameras, in order.
func (st *stage) shows(peer PeerID, want ...PeerID) {
	st.t.Helper()
	synctest.Wait()
	var got []PeerID
	for _, e := range st.room.Table(peer) {
		got = append(got, e.Peer)
	}
	if !slices.Equal(got, want) {
		st.t.Fatalf("%s is shown %q, want %q", peer, got, want)
	}
}

// stream fails the test unless the packets form one stream: numbers without
// gaps, timestamps that never go back, counters of VP8 that go on by one for
// each frame.
func (st *stage) stream(packets []rtp.Packet) {
	st.t.Helper()
	for i := 1; i < len(packets); i++ {
		a, b := &packets[i-1], &packets[i]
		pa, pb := parseVP8(a.Payload), parseVP8(b.Payload)
		if b.SequenceNumber != a.SequenceNumber+1 {
			st.t.Fatalf("packet %d: sequence number %d after %d", i, b.SequenceNumber, a.SequenceNumber)
		}
		step := uint16(0)
		if a.Marker {
			step = 1
		}
		if forward := int32(b.Timestamp - a.Timestamp); forward < 0 || (forward > 0) != a.Marker || forward > 90000*10 {
			st.t.Fatalf("packet %d: timestamp goes by %d", i, forward)
		}
		if (pb.PictureID-pa.PictureID)&0x7FFF != step || pb.TL0-pa.TL0 != uint8(step) {
			st.t.Fatalf("packet %d: picture %d after %d, tl0 %d after %d", i, pb.PictureID, pa.PictureID, pb.TL0, pa.TL0)
		}
	}
}

func marshal(t testing.TB, h rtp.Header, payload []byte) []byte {
	t.Helper()
	raw, err := (&rtp.Packet{Header: h, Payload: payload}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parseVP8(payload []byte) parse.Picture { return parse.ReadPayload(parse.VP8, payload) }
