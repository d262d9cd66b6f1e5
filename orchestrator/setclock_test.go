package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A node that refused a room takes other rooms again after 2 s, though the store's clock was set back in between.
func TestARefusalLapsesThoughTheStoresClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, ahead := DefaultConfig(), 10*time.Minute
		cfg.StoreClock = func() time.Time { return time.Now().Add(ahead) }
		signaling := New(testkit.NewMemoryStore(), fixed(viewOf(sfu("a", 1))), &addresses{}, cfg, quiet)
		p, err := signaling.Place(t.Context(), "refused", headroom.Room{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := signaling.PlaceAgain(t.Context(), "refused", p, headroom.Room{}); err == nil {
			t.Fatalf("PlaceAgain = %v where no other node is", got)
		}
		if got, err := signaling.Place(t.Context(), "other", headroom.Room{}); err == nil {
			t.Fatalf("Place = %v at a node that has just refused a room", got)
		}
		ahead = 0
		<-time.After(refusalLasts)
		if _, err := signaling.Place(t.Context(), "other", headroom.Room{}); err != nil {
			t.Errorf("Place = %v, %v after the refusal", err, refusalLasts)
		}
	})
}
