package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
)

// A host that vanished is silent, and refuses nothing. A signaling node that did not see it go must neither keep its
// pins until they expire, nor move them before it has heard of everybody.
func TestAPinOfAVanishedHostIsStaleOnceTheViewKnowsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, view := testkit.NewMemoryStore(), viewOf(sfu("b", 1))
		store.Put("r", pinAt("a", 1, 5000, 1).Encode())
		alive := &addresses{boots: map[string]pin.BootID{"a.test:7000": bootOf("a", 1)}}
		silent := &addresses{}
		view.SettledAt = time.Now()
		place := func(prober Prober) pin.Pin {
			placed, err := New(store, fixed(view), prober, DefaultConfig(), quiet).Place(t.Context(), "r", headroom.Room{})
			if err != nil {
				t.Fatal(err)
			}
			return placed
		}
		<-time.After(20 * time.Second)
		if got := place(silent); got.Node != "a" {
			t.Fatalf("moved to %s by a view that has just settled", got.Node)
		}
		<-time.After(10 * time.Second)
		if got := place(alive); got.Node != "a" {
			t.Fatalf("moved to %s though its process answers", got.Node)
		}
		if got := place(silent); got.Node != "b" || got.Fence.Epoch != 5001 {
			t.Fatalf("the room of a host that vanished is on %s, epoch %d", got.Node, got.Fence.Epoch)
		}
	})
}
