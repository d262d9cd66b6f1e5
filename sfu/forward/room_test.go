package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"

	"github.com/pion/rtp"
)

func TestViewerStartsWithAKeyframe(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		st.shows("bob", "alice")
		alice.frame(true, 2)
		if got := bob.take(); len(got) != 0 {
			t.Fatal("written before the transport was ready")
		}
		st.pass(time.Second)
		alice.frame(false, 1)
		before := alice.asked()
		bob.slot.Ready()
		synctest.Wait()
		if alice.asked() != before+1 {
			t.Fatal("no keyframe requested when the transport came up")
		}
		alice.frame(false, 1)
		if got := bob.take(); len(got) != 0 {
			t.Fatal("began without a keyframe")
		}
		alice.frame(true, 3)
		alice.frame(false, 1)
		got := bob.take()
		if len(got) != 4 || !parseVP8(got[0].Payload).Keyframe {
			t.Fatalf("%d packets", len(got))
		}
		st.stream(got)
		if h := got[0].Header; h.SSRC != 4711 || h.PayloadType != 96 || h.Extension {
			t.Fatal(h)
		}
		if d := st.room.Stats().Drops; d.Total() != 0 {
			t.Fatal(d)
		}
	})
}

func TestSwitchesAreOneStream(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		cameras := map[PeerID]*camera{"alice": st.camera("alice", "", 180), "caroline": st.camera("caroline", "", 180)}
		cameras["caroline"].timestamp = 3_000_000_000
		var all []rtp.Packet
		for round := range 20 {
			name := []PeerID{"alice", "caroline"}[round%2]
			st.room.SetView("bob", []Want{{Peer: name, Source: SourceCamera, Width: 320, Height: 180}})
			st.shows("bob", name)
			for i := range 10 {
				for _, c := range cameras {
					c.frame(i == 3, 2)
				}
			}
			packets := bob.take()
			if len(packets) < 10 {
				t.Fatalf("round %d: %d packets", round, len(packets))
			}
			all = append(all, packets...)
			st.pass(time.Duration(round) * 400 * time.Millisecond)
		}
		st.stream(all)
	})
}

// Timestamps of two layers of one camera, related by sender reports, go on
// exactly when the layer changes.
func TestLayerSwitchKeepsTime(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		low, high := st.camera("alice", "q", 180), st.camera("alice", "f", 720)
		high.timestamp = 4_294_900_000 // turns over during the test
		both := func(keyframe bool) {
			for _, c := range []*camera{low, high} {
				c.layer.SenderReport(rtptime.NTP(time.Now().Add(-time.Hour)), c.timestamp, time.Now())
			}
			synctest.Wait()
			for _, c := range []*camera{high, low} {
				c.st.push(c.layer, rtp.Header{
					Version: 2, Marker: true, PayloadType: 96, SequenceNumber: c.sequence, Timestamp: c.timestamp,
				}, vp8Payload(keyframe, true, c.pictureID, c.tl0, c.height, 0, 50))
				c.sequence++
				c.next()
				synctest.Wait()
			}
			st.pass(33 * time.Millisecond)
		}
		both(true)
		for i := range 60 {
			switch i {
			case 20:
				st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
			case 40:
				st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 160, Height: 90}})
			}
			both(i == 22 || i == 44)
		}
		got := bob.take()
		// Going up, the high layer's keyframe precedes the low frame of that
		// instant; going down, it follows the high one, and time hardly moves.
		if len(got) != 62 {
			t.Fatalf("%d packets, want each of 61 instants and one twice", len(got))
		}
		st.stream(got)
		heights := map[int]bool{}
		for i := range got {
			if i > 0 {
				step := got[i].Timestamp - got[i-1].Timestamp
				if i == 46 { // the instant that is shown twice
					step += 2970 - 90
				}
				if step < 2970-2 || step > 2970+2 {
					t.Fatalf("packet %d: timestamp goes by %d", i, step)
				}
			}
			if p := parseVP8(got[i].Payload); p.Keyframe {
				heights[p.Height] = true
			}
		}
		if !heights[180] || !heights[720] {
			t.Fatal("not both layers were shown:", heights)
		}
	})
}

// The page shows another name at once, so the old picture must not go on under it.
func TestNoPictureUnderAnotherName(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice, carl := st.camera("alice", "", 180), st.camera("carl", "", 180)
		alice.frame(true, 1)
		carl.frame(true, 1)
		st.pass(time.Second)
		before := bob.take()
		st.room.SetView("bob", []Want{{Peer: "carl", Source: SourceCamera, Width: 320, Height: 180}})
		st.shows("bob", "carl")
		alice.frame(false, 2)
		carl.frame(false, 2)
		if got := bob.take(); len(got) != 0 {
			t.Fatalf("%d packets before the new picture", len(got))
		}
		carl.frame(true, 2)
		st.stream(append(before, bob.take()...))
	})
}

func TestSilentLayerIsReplaced(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		low, high := st.camera("alice", "q", 180), st.camera("alice", "f", 720)
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		for range 5 {
			low.frame(true, 1)
			high.frame(true, 1)
		}
		if got := bob.take(); len(got) == 0 || parseVP8(got[len(got)-1].Payload).Height != 720 {
			t.Fatal("the high layer is not shown")
		}
		for range 80 { // the high layer says no more
			low.frame(low.asked() > 0, 1)
		}
		got := bob.take()
		if len(got) == 0 || parseVP8(got[len(got)-1].Payload).Height != 180 {
			t.Fatal("no fall to the low layer")
		}
		for range 10 {
			low.frame(false, 1)
			high.frame(true, 1)
		}
		if got := bob.take(); parseVP8(got[len(got)-1].Payload).Height != 720 {
			t.Fatal("no return to the high layer")
		}
	})
}

func TestDropsAreCounted(t *testing.T) {
	room := NewRoom(Config{QueuePackets: 4}, nil)
	layer := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
	raw, _ := (&rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 96}, Payload: []byte{1, 2, 3}}).Marshal()
	for range 10 { // nobody runs the room
		p := room.GetPacket()
		p.SetLength(copy(p.Buffer(), raw))
		layer.Push(p)
	}
	layer.Push(room.GetPacket())
	raw[1]++ // another payload type
	p := room.GetPacket()
	p.SetLength(copy(p.Buffer(), raw))
	layer.Push(p)
	if s := room.Stats(); s.PacketsIn != 12 || s.Drops != (Drops{QueueFull: 6, Malformed: 2}) {
		t.Fatal(s)
	}
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		bob.err = errors.New("refused")
		alice.frame(false, 1)
		bob.err = fmt.Errorf("gone: %w", io.ErrClosedPipe)
		alice.frame(false, 1)
		if d := st.room.Stats().Drops; d != (Drops{Write: 1}) {
			t.Fatal(d)
		}
	})
}

func TestPaddingIsSwallowed(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		for i := range 50 {
			if i%3 == 0 {
				st.push(alice.layer, rtp.Header{
					Version: 2, Padding: true, PaddingSize: 200, PayloadType: 96,
					SequenceNumber: alice.sequence, Timestamp: alice.timestamp - 2970,
				}, nil)
				alice.sequence++
			}
			alice.frame(false, 1)
		}
		got := bob.take()
		if len(got) != 51 {
			t.Fatal(len(got))
		}
		st.stream(got)
	})
}

func TestCallsAfterTheEndDoNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
		layer := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := room.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for range 2 * queueTasks { // nothing blocks once the loop has ended
			room.SetView("bob", nil)
		}
		room.AddSlot(SlotConfig{Peer: "bob"}).Close()
		layer.Close()
	})
}

// TestPacketFasterThanItsLayer: the loop may see a layer's first packet, the
// keyframe, before the task that adds the layer.
func TestPacketFasterThanItsLayer(t *testing.T) {
	room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
	w := &sink{}
	room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindVideo, Writer: w, Codecs: []Codec{vp8}}).Ready()
	room.handleTasks(<-room.tasks)
	layer := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
	for _, payloadType := range []uint8{vp8.PayloadType, vp8.PayloadType + 1} { // the second is not what was negotiated
		p := room.GetPacket()
		p.SetLength(copy(p.Buffer(), marshal(t, rtp.Header{Version: 2, PayloadType: payloadType, SequenceNumber: uint16(payloadType)},
			vp8Payload(payloadType == vp8.PayloadType, true, 1, 1, 180, 0, 50))))
		layer.Push(p)
	}
	room.handleBurst(<-room.packets)
	room.handleTasks(<-room.tasks)
	if w.packets != 1 || len(room.packets) != 0 || len(room.members.layers) != 1 {
		t.Fatal(w.packets, len(room.packets), len(room.members.layers))
	}
}
