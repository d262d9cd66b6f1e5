package forward

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAStepDownStopsAtOnce: what the path does not carry is not sent until the lower layer's
// keyframe comes, nor sent again; that keyframe is asked for until it comes.
func TestAStepDownStopsAtOnce(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.simulcast("alice")
		low := alice.layers[0]
		view := st.slot("bob", "1", KindVideo)
		view.slot.Ready()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		alice.run(4 * time.Second)
		sent := view.take()
		asked := low.asked()
		st.room.SetBudget("bob", 300_000)
		synctest.Wait()
		if low.asked() != asked+1 {
			t.Fatal("the lower layer was not asked for a keyframe at once")
		}
		for range 25 { // a second, and the publisher does not hear
			for i, c := range alice.layers {
				c.burst(false, []int{1, 3, 10}[i])
			}
			st.pass(40 * time.Millisecond)
		}
		view.slot.NACK([]uint16{sent[len(sent)-1].SequenceNumber})
		synctest.Wait()
		if got := view.take(); len(got) != 0 {
			t.Errorf("%d packets of what the path does not carry", len(got))
		}
		if n := low.asked() - asked; n < 3 || n > 4 {
			t.Errorf("%d requests for a keyframe in a second, want one every 400 ms", n)
		}
		low.burst(true, 2)
		synctest.Wait()
		got := view.take()
		if len(got) != 2 || parseVP8(got[0].Payload).Height != 180 {
			t.Fatalf("%d packets at the lower layer's keyframe", len(got))
		}
		st.stream(append(sent[len(sent)-1:], got...))
	})
}

// TestAStepUpThatIsTakenBack leaves what is sent as it is.
func TestAStepUpThatIsTakenBack(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.simulcast("alice")
		view := st.slot("bob", "1", KindVideo)
		view.slot.Ready()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		st.room.SetBudget("bob", 300_000)
		alice.run(4 * time.Second)
		frames := func(n int) {
			for range n {
				for i, c := range alice.layers {
					c.burst(false, []int{1, 3, 10}[i])
				}
				st.pass(40 * time.Millisecond)
			}
		}
		st.room.SetBudget("bob", 900_000)
		before := alice.layers[1].asked()
		frames(40)
		if alice.layers[1].asked() == before {
			t.Fatal("no keyframe was asked for: there is nothing to take back")
		}
		sent := view.take()
		st.room.SetBudget("bob", 300_000)
		frames(10)
		got := view.take()
		if len(got) != 10 {
			t.Errorf("%d packets in 10 frames", len(got))
		}
		st.stream(append(sent, got...))
	})
}
