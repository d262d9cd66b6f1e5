package forward

import (
	"testing"
	"time"
)

// TestRefreshAsksForAKeyframe: a subscriber that sees nothing gets a keyframe asked for, the second
// time a stream that begins anew, and cannot ask faster than the bound.
func TestRefreshAsksForAKeyframe(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		for range 20 {
			alice.frame(false, 1)
		}
		bob.take()
		asked := alice.asked()
		for range 5 {
			st.room.Refresh("bob", []string{"1", "unknown"})
		}
		st.room.Refresh("nobody", []string{"1"})
		alice.frame(false, 1)
		if n := alice.asked() - asked; n != 1 {
			t.Errorf("%d keyframes asked for at the first refresh, want 1", n)
		}
		if n := len(bob.take()); n != 1 {
			t.Errorf("%d packets after the first refresh, want what came: 1", n)
		}
		st.pass(time.Second)
		asked = alice.asked()
		st.room.Refresh("bob", []string{"1"})
		alice.frame(false, 1)
		if n := len(bob.take()); n != 0 {
			t.Errorf("%d packets after the second refresh and before a keyframe", n)
		}
		if alice.asked() == asked {
			t.Error("no keyframe was asked for at the second refresh")
		}
		alice.frame(true, 1)
		if n := len(bob.take()); n != 1 {
			t.Errorf("%d packets at the keyframe, want 1", n)
		}
	})
}
