package forward

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

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
		if len(got) != 4 || !parseVP8(got[0].Payload).keyframe {
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

// A viewer that comes shortly after a keyframe gets that one, because the
// publisher would ignore a request so soon.
func TestFreshKeyframeIsReplayed(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		alice.frame(true, 2)
		alice.frame(false, 1)
		before := alice.asked()
		bob.slot.Ready()
		synctest.Wait()
		if got := bob.take(); len(got) != 3 || alice.asked() != before {
			t.Fatalf("%d packets, %d requests", len(got), alice.asked()-before)
		}
		alice.frame(false, 1)
		if got := bob.take(); len(got) != 1 {
			t.Fatal(len(got))
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
				c.layer.SenderReport(ntpTime(time.Now().Add(-time.Hour)), c.timestamp, time.Now())
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
			if p := parseVP8(got[i].Payload); p.keyframe {
				heights[p.height] = true
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

func TestPeerClock(t *testing.T) {
	var c peerClock
	theirs, ours := time.Unix(0, 0), time.Unix(1_800_000_000, 0)
	c.observe(theirs, ours)
	first := c.offset
	c.observe(theirs, ours.Add(160*time.Millisecond)) // a report that was held up
	if c.offset != first+10*time.Millisecond {
		t.Fatal(c.offset - first)
	}
	c.observe(theirs.Add(time.Hour), ours) // somebody set the clock
	if c.offset != first-time.Hour {
		t.Fatal(c.offset - first)
	}
	if got := fromNTPTime(ntpTime(ours.Add(123456789))); got.Sub(ours.Add(123456789)).Abs() > time.Microsecond {
		t.Fatal(got)
	}
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
		if got := bob.take(); len(got) == 0 || parseVP8(got[len(got)-1].Payload).height != 720 {
			t.Fatal("the high layer is not shown")
		}
		for range 80 { // the high layer says no more
			low.frame(low.asked() > 0, 1)
		}
		got := bob.take()
		if len(got) == 0 || parseVP8(got[len(got)-1].Payload).height != 180 {
			t.Fatal("no fall to the low layer")
		}
		for range 10 {
			low.frame(false, 1)
			high.frame(true, 1)
		}
		if got := bob.take(); parseVP8(got[len(got)-1].Payload).height != 720 {
			t.Fatal("no return to the high layer")
		}
	})
}

func TestRetransmission(t *testing.T) {
	for _, rtx := range []bool{true, false} {
		t.Run(fmt.Sprintf("rtx=%v", rtx), func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				bob, dave := st.slot("bob", "1", KindVideo), st.slot("dave", "1", KindVideo)
				if !rtx {
					bob.slot.cfg.RTXSSRC = 0
				}
				bob.slot.Ready()
				alice := st.camera("alice", "", 180)
				alice.frame(true, 3)
				st.pass(time.Second)
				alice.frame(true, 1)
				dave.slot.Ready() // begins later: its picture ids differ from bob's
				for range 15 {
					alice.frame(false, 2) // reuses buffers, if anybody gave one back too early
				}
				sent := bob.take()
				if id := parseVP8(dave.take()[0].Payload).pictureID; id == parseVP8(sent[3].Payload).pictureID {
					t.Fatal("the two streams have the same picture ids and prove nothing")
				}
				asked := sent[4:24]
				var numbers []uint16
				for _, p := range asked {
					numbers = append(numbers, p.SequenceNumber)
				}
				bob.slot.NACK(append(numbers, sent[0].SequenceNumber-9))
				synctest.Wait()
				again := bob.take()
				if len(again) != len(asked) {
					t.Fatalf("%d packets, want %d", len(again), len(asked))
				}
				for i, p := range again {
					payload := p.Payload
					number, ssrc, payloadType := p.SequenceNumber, uint32(4711), uint8(96)
					if rtx {
						number, payload = binary.BigEndian.Uint16(payload), payload[2:]
						ssrc, payloadType = 4712, 97
						if p.SequenceNumber != again[0].SequenceNumber+uint16(i) {
							t.Fatal("RTX has numbers of its own, without gaps")
						}
					}
					if number != numbers[i] || p.SSRC != ssrc || p.PayloadType != payloadType || p.Timestamp != asked[i].Timestamp ||
						p.Marker != asked[i].Marker || !bytes.Equal(payload, asked[i].Payload) {
						t.Fatalf("packet %d differs", i)
					}
				}
				if s := st.room.Stats(); s.RetransmitMisses != 1 || s.Retransmitted != uint64(len(asked)) {
					t.Fatal(s)
				}
				st.pass(2 * cacheAge)
				bob.slot.NACK(numbers)
				synctest.Wait()
				if got := bob.take(); len(got) != 0 {
					t.Fatal("retransmitted what is too old")
				}
			})
		})
	}
}

func TestRetransmissionIsBounded(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		number := bob.take()[0].SequenceNumber
		for range 1000 {
			bob.slot.NACK([]uint16{number})
		}
		synctest.Wait()
		if n := len(bob.take()); n != retransmitBurst {
			t.Fatal(n)
		}
	})
}

func TestKeyframeRequestsAreCoalesced(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.camera("alice", "", 180)
		var viewers []*screenful
		for i := range 20 {
			v := st.slot(PeerID(fmt.Sprint("viewer", i)), "1", KindVideo)
			v.slot.Ready()
			viewers = append(viewers, v)
		}
		alice.frame(true, 1)
		st.pass(time.Second)
		before := alice.asked()
		for _, v := range viewers {
			v.slot.KeyframeRequested()
		}
		synctest.Wait()
		if n := alice.asked() - before; n != 1 {
			t.Fatalf("%d requests", n)
		}
		st.pass(time.Second)
		if n := alice.asked() - before; n != 2 {
			t.Fatalf("%d requests: the ones within the interval are made once, later", n)
		}
	})
}

func TestTakeOverKeepsTheTable(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		table := []Entry{
			{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera},
			{Mid: "b", Kind: KindVideo, Peer: "bob", Source: SourceCamera}, // oneself: not believed
			{Mid: "c", Kind: KindVideo, Peer: "alice", Source: SourceCamera},
		}
		st.room.SetTable("bob", table)
		for _, mid := range []string{"a", "b", "c"} {
			st.slot("bob", mid, KindVideo).slot.Ready()
		}
		st.shows("bob", "zoe", "", "alice")
		st.camera("alice", "", 180)
		st.camera("carl", "", 180)
		st.shows("bob", "zoe", "carl", "alice")
		st.camera("emma", "", 180)
		st.shows("bob", "emma", "carl", "alice") // zoe is not here yet, and the place is needed
		st.room.RemovePeer("emma")
		st.shows("bob", "", "carl", "alice")
	})
}

func TestExpectedPeersAreAwaitedForAWhile(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.room.SetTable("bob", []Entry{{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera}})
		st.slot("bob", "a", KindVideo)
		st.pass(defaultHoldTable - time.Second)
		st.shows("bob", "zoe")
		st.pass(2 * time.Second)
		st.shows("bob", "")
		st.room.SetTable("bob", []Entry{{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera}})
		st.shows("bob", "zoe")
		st.room.RemovePeer("zoe")
		st.shows("bob", "")
	})
}

func TestReplacedConnectionKeepsTheTable(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		first, second := st.slot("bob", "a", KindVideo), st.slot("bob", "b", KindVideo)
		st.camera("alice", "", 180)
		carl := st.camera("carl", "", 180)
		st.shows("bob", "alice", "carl")
		first.slot.Close()
		second.slot.Close()
		st.shows("bob")
		st.slot("bob", "b", KindVideo)
		st.slot("bob", "a", KindVideo)
		st.shows("bob", "carl", "alice")
		carl.layer.Close()
		st.shows("bob", "carl", "alice")
		again := st.camera("carl", "", 180)
		st.shows("bob", "carl", "alice")
		again.layer.Close()
		st.pass(holdGone + time.Second)
		st.shows("bob", "", "alice")
	})
}

func TestHiddenSendsNothing(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		before := bob.take()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera}})
		st.shows("bob", "alice")
		for range 20 {
			alice.frame(false, 1)
		}
		if n := len(bob.take()); n != 0 {
			t.Fatalf("%d packets of what is hidden", n)
		}
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
		alice.frame(false, 1)
		alice.frame(true, 1)
		st.stream(append(before, bob.take()...))
	})
}

func TestCodecTheViewerLacks(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.slot("bob", "1", KindVideo)
		st.room.AddLayer(LayerConfig{
			Peer: "alice", Source: SourceCamera, Kind: KindVideo,
			Codec: Codec{MimeType: "video/H264", Fmtp: "profile-level-id=42e01f;packetization-mode=1", PayloadType: 102},
		})
		st.shows("bob", "")
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
	if s := room.Stats(); s.PacketsIn != 11 || s.Drops != (Drops{QueueFull: 6, Malformed: 1}) {
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
	room.control(<-room.tasks)
	layer := room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8})
	for _, payloadType := range []uint8{vp8.PayloadType, vp8.PayloadType + 1} { // the second is not what was negotiated
		p := room.GetPacket()
		p.SetLength(copy(p.Buffer(), marshal(t, rtp.Header{Version: 2, PayloadType: payloadType, SequenceNumber: uint16(payloadType)},
			vp8Payload(payloadType == vp8.PayloadType, true, 1, 1, 180, 0, 50))))
		layer.Push(p)
	}
	room.burst(<-room.packets)
	room.control(<-room.tasks)
	if w.packets != 1 || len(room.packets) != 0 || len(room.layers) != 1 {
		t.Fatal(w.packets, len(room.packets), len(room.layers))
	}
}

// TestLayerReplacesItsPredecessor: a publisher that comes back on another
// connection is one publisher, not two layers.
func TestLayerReplacesItsPredecessor(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		old := st.camera("alice", "", 180)
		old.frame(true, 1)
		before := bob.take()
		again := st.camera("alice", "", 180)
		old.frame(true, 1)
		if got := bob.take(); len(got) != 0 {
			t.Fatal("the old connection's picture goes on")
		}
		again.frame(true, 1)
		old.layer.Close() // late, and no matter
		again.frame(false, 1)
		st.shows("bob", "alice")
		got := bob.take()
		if len(got) != 2 {
			t.Fatal(len(got))
		}
		st.stream(append(before, got...))
	})
}
