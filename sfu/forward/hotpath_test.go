package forward

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// sink is a writer that keeps nothing.
type sink struct{ packets int }

func (s *sink) WriteRTP(h *rtp.Header, payload []byte) (int, error) {
	s.packets++
	return 12 + len(payload), nil
}

// TestHotPathAllocatesNothing follows packets from Push to the writers of 50
// slots, on the test's own goroutine in the loop's place.
func TestHotPathAllocatesNothing(t *testing.T) {
	room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
	drain := func() {
		for len(room.tasks) > 0 {
			room.handleTasks(<-room.tasks)
		}
	}
	layer := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
	mic := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus, AudioLevelExtensionID: levelID})
	var writers []*sink
	for i := range 50 {
		w := &sink{}
		writers = append(writers, w)
		peer := PeerID(fmt.Sprint(i))
		path := &pathStub{}
		room.AddSlot(SlotConfig{
			Peer: peer, Mid: "1", Kind: KindVideo, Writer: w, SSRC: 1, Codecs: []Codec{vp8}, Path: path, TransportSequenceID: 3,
		}).Ready()
		room.AddSlot(SlotConfig{
			Peer: peer, Mid: "2", Kind: KindAudio, Writer: w, SSRC: 2, Codecs: []Codec{opus}, Path: path, TransportSequenceID: 3,
		}).Ready()
		drain()
	}
	picture := marshal(t, rtp.Header{Version: 2, Marker: true, PayloadType: 96}, vp8Payload(true, true, 5, 5, 180, 0, 1100))
	h := rtp.Header{Version: 2, PayloadType: 111}
	if err := h.SetExtension(levelID, []byte{40}); err != nil {
		t.Fatal(err)
	}
	sound := marshal(t, h, []byte("opus"))
	sequence := uint16(0)
	push := func(l *Layer, raw []byte) {
		raw[2], raw[3] = byte(sequence>>8), byte(sequence)
		p := room.GetPacket()
		p.SetLength(copy(p.Buffer(), raw))
		l.Push(p)
		room.handleBurst(<-room.packets)
	}
	both := func() {
		push(layer, picture)
		push(mic, sound)
		sequence++
	}
	for range 2 * videoCachePackets { // the caches fill
		both()
	}
	before := writers[7].packets
	allocated := testing.AllocsPerRun(1000, both)
	if allocated != 0 {
		t.Errorf("%v allocations for each packet forwarded to %d slots", allocated, len(writers))
	}
	if n := writers[7].packets - before; n != 2*1001 {
		t.Errorf("%d packets written, want %d", n, 2*1001)
	}
	layer.cache.expire(time.Now().Add(time.Hour))
	if p := layer.cache.get(layer.cache.highest); p != nil {
		t.Error("the cache kept what is too old")
	}
}
