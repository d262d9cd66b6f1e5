package forward

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatesSayWhatASlotWaitsFor follows one slot through all that it may have to wait for.
func TestStatesSayWhatASlotWaitsFor(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.room.SetTable("bob", []Entry{{Mid: "1", Kind: KindVideo, Peer: "alice", Source: SourceCamera}})
		bob := st.slot("bob", "1", KindVideo)
		waits := func(want string) SlotState {
			t.Helper()
			states := st.room.States()
			slot := states["bob"].Slots[0]
			if !strings.HasPrefix(slot.Waits, want) || want == "" && slot.Waits != "" {
				t.Fatalf("the slot waits for %q, want %q: %+v", slot.Waits, want, slot)
			}
			return slot
		}
		waits("the publisher's track")
		alice := st.camera("alice", "", 180)
		waits("the subscriber's transport")
		bob.slot.Ready()
		waits("a keyframe of layer -")
		alice.frame(true, 3)
		slot := waits("")
		if slot.PacketsIn != 3 || slot.PacketsOut != 3 || slot.KeyframesSent != 1 || slot.Target != "-" || slot.Sent != "-" {
			t.Errorf("after a keyframe of 3 packets: %+v", slot)
		}
		layer := st.room.States()["alice"].Layers[0]
		if layer.PacketsIn != 3 || layer.KeyframesSeen != 1 || layer.KeyframesAsked != 1 || layer.Height != 180 || layer.HeardAt.IsZero() {
			t.Errorf("the publisher's track: %+v", layer)
		}
		bob.slot.KeyframeRequested()
		if got := waits("").KeyframesAsked; got != 1 {
			t.Errorf("%d keyframes asked for, want 1", got)
		}
		st.pass(3 * time.Second)
		waits("packets of layer -")
		for range 20 {
			alice.frame(true, 3)
		}
		st.room.SetBudget("bob", 1000)
		synctest.Wait()
		if waits("the path: it carries 1000 bit/s"); st.room.States()["bob"].BudgetBitsPerSecond != 1000 {
			t.Error("the budget is not told")
		}
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera}})
		synctest.Wait()
		waits("the page")
	})
}
