package forward

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

// part is a Batcher that knows whether it is open, and whether two use it.
type part struct {
	open atomic.Bool
	ends atomic.Int64
}

func (p *part) Begin() {
	if p.open.Swap(true) {
		panic("begun twice")
	}
}

func (p *part) End() {
	if !p.open.Swap(false) {
		panic("ended without a beginning")
	}
	p.ends.Add(1)
}

// gallery is a room of many viewers of one camera in three parts.
func gallery(t *testing.T, scenario func(st *stage, alice *camera, views []*screenful, parts []*part)) {
	parts := []*part{{}, {}, {}}
	onStage(t, Config{Batchers: []Batcher{parts[0], parts[1], parts[2]}}, func(st *stage) {
		alice := st.camera("alice", "", 180)
		var views []*screenful
		for i := range 2 * shardSlots {
			view := st.slotIn(PeerID(fmt.Sprint("viewer-", i)), "1", KindVideo, i%len(parts))
			view.slot.Ready()
			views = append(views, view)
		}
		scenario(st, alice, views, parts)
	})
}

// TestPartsOfARoomSendWhatOneWould: every viewer gets the same pictures, numbered for it alone, wherever it began.
func TestPartsOfARoomSendWhatOneWould(t *testing.T) {
	gallery(t, func(st *stage, alice *camera, views []*screenful, parts []*part) {
		alice.frame(true, 3)
		for range 20 {
			alice.frame(false, 4)
		}
		late := st.slotIn("late", "1", KindVideo, 1)
		late.slot.Ready()
		alice.frame(false, 2)
		alice.frame(true, 4)
		alice.frame(false, 2)
		for i, view := range views {
			got := view.take()
			if len(got) != 3+20*4+2+4+2 {
				t.Fatalf("viewer %d got %d packets", i, len(got))
			}
			st.stream(got)
		}
		got := late.take()
		if len(got) != 6 || !parseVP8(got[0].Payload).Keyframe {
			t.Errorf("who came late got %d packets, want the keyframe and what followed", len(got))
		}
		st.stream(got)
		for i, p := range parts {
			if p.ends.Load() == 0 || p.open.Load() {
				t.Errorf("part %d sent %d times, open: %v", i, p.ends.Load(), p.open.Load())
			}
		}
		if n := st.room.Stats().PacketsForwarded; n != uint64(len(views)*91+6) {
			t.Errorf("%d packets counted, want %d", n, len(views)*91+6)
		}
	})
}

// TestAPanicInAPartCostsTheTrack and no more, as on the loop.
func TestAPanicInAPartCostsTheTrack(t *testing.T) {
	gallery(t, func(st *stage, alice *camera, views []*screenful, parts []*part) {
		alice.frame(true, 3)
		broken := make(chan struct{})
		st.room.post(func() { views[1].slot.cfg.Writer = landmine{}; close(broken) })
		<-broken
		alice.frame(false, 3)
		views[1].slot.room.post(func() { views[1].slot.cfg.Writer = views[1] })
		bob := st.camera("bob", "", 180)
		views[0].take()
		bob.frame(true, 3)
		synctest.Wait()
		if got := views[0].take(); len(got) != 3 {
			t.Errorf("%d packets of another track after a panic, want 3", len(got))
		}
	})
}

// TestPartsForwardNothingOfRecycledPackets, which last carried redundant sound or a described picture.
func TestPartsForwardNothingOfRecycledPackets(t *testing.T) {
	gallery(t, func(st *stage, alice *camera, views []*screenful, _ []*part) {
		st.room.pool.New = func() any {
			return &Packet{pool: st.room.pool, redundancy: parse.Redundancy{Blocks: 2, Newest: 60}, frame: descriptor.Frame{Number: 300}}
		}
		alice.frame(true, 3)
		alice.frame(false, 3)
		frames := make(chan uint16, len(views))
		st.room.post(func() {
			for _, view := range views {
				frames <- view.slot.rewriter.Frame
			}
		})
		first := <-frames
		for i, view := range views {
			for _, p := range view.take() {
				if len(p.Payload) != 100 {
					st.t.Fatalf("viewer %d got %d bytes of a payload of 100", i, len(p.Payload))
				}
			}
			if i > 0 {
				if frame := <-frames; frame != first {
					t.Errorf("viewer %d is at frame %d, the first one at %d", i, frame, first)
				}
			}
		}
	})
}

// TestSoundIsForwardedInParts: everybody of a large room hears the same, in order, whoever comes late, too.
func TestSoundIsForwardedInParts(t *testing.T) {
	parts := []*part{{}, {}, {}}
	onStage(t, Config{Batchers: []Batcher{parts[0], parts[1], parts[2]}}, func(st *stage) {
		alice := st.microphone("alice")
		var listeners []*screenful
		for i := range 2 * shardSlots {
			listener := st.slotIn(PeerID(fmt.Sprint("listener-", i)), "1", KindAudio, i%len(parts))
			listener.slot.Ready()
			listeners = append(listeners, listener)
		}
		synctest.Wait()
		for range 20 {
			alice.say(20)
		}
		late := st.slotIn("late", "1", KindAudio, 1)
		late.slot.Ready()
		synctest.Wait()
		for range 5 {
			alice.say(20)
		}
		synctest.Wait()
		for i, listener := range append(listeners, late) {
			want := 25
			if listener == late {
				want = 5
			}
			got := listener.take()
			if len(got) != want {
				t.Fatalf("listener %d heard %d packets, want %d", i, len(got), want)
			}
			for j := 1; j < len(got); j++ {
				if got[j].SequenceNumber != got[j-1].SequenceNumber+1 || got[j].Timestamp != got[j-1].Timestamp+960 {
					t.Fatalf("listener %d heard packet %d after %d", i, got[j].SequenceNumber, got[j-1].SequenceNumber)
				}
			}
		}
		for i, p := range parts {
			// More often than the loop, which ends a batch for each burst.
			if p.ends.Load() <= parts[0].ends.Load()/2 || p.open.Load() {
				t.Errorf("part %d sent %d times, open: %v", i, p.ends.Load(), p.open.Load())
			}
		}
	})
}
