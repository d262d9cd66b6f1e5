package orchestrator

import (
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMove(t *testing.T) {
	full, draining, unheard := sfu("full", 1), sfu("draining", 1), sfu("unheard", 1)
	full.Load.EgressBitsPerSecond = full.Load.CeilingBitsPerSecond
	draining.Draining, unheard.Unreachable = true, true
	seen := fixed(viewOf(sfu("a", 1), sfu("b", 1), full, draining, unheard))
	store := testkit.NewMemoryStore()
	signaling := New(store, seen, &addresses{}, patient(), quiet)
	was := pinAt("a", 1, 5000, 7)
	store.Put(class, was.Encode())
	for _, to := range []ring.NodeID{"a", "full", "draining", "unheard", "nobody"} {
		got, err := signaling.Move(t.Context(), class, was, to, headroom.Expect(3), pin.WhyOperator)
		if target := new(TargetError); !errors.As(err, &target) && (to != "full" || !errors.As(err, new(*NoHeadroomError))) {
			t.Errorf("to %s: %v, %v", to, got, err)
		}
	}
	if stands := store.Stands(class); stands != was.Encode() {
		t.Fatalf("a refused move wrote %s", stands)
	}
	seen.Store(viewOf(sfu("a", 1), unheard))
	if got, err := signaling.Move(t.Context(), class, was, "", headroom.Expect(3), pin.WhyOperator); !errors.Is(err, ErrNoNodes) {
		t.Errorf("only an unheard node is left: %v, %v", got, err)
	}
	seen.Store(viewOf(sfu("a", 1), sfu("b", 1), full, draining))
	moved, err := signaling.Move(t.Context(), class, was, "", headroom.Expect(3), pin.WhyOperator)
	if err != nil || moved.Node != "b" || moved.Fence.Epoch != was.Fence.Epoch+1 || store.Stands(class) != moved.Encode() {
		t.Fatalf("Move = %v, %v", moved, err)
	}
	if sum := signaling.ledger.sums[moved.Boot]; sum != headroom.Expect(3).Cost() {
		t.Errorf("reserved on b: %v", sum)
	}
	// Somebody else was first: the caller follows.
	if again, err := signaling.Move(t.Context(), class, was, "", headroom.Expect(3), pin.WhyOperator); err != nil || again != moved {
		t.Errorf("a second mover got %v, %v", again, err)
	}
	back, err := signaling.Move(t.Context(), class, moved, "a", headroom.Expect(3), pin.WhyOperator)
	if err != nil || back.Node != "a" || !moved.Fence.Less(back.Fence) {
		t.Errorf("back: %v, %v", back, err)
	}
	if got, err := signaling.Move(t.Context(), "nowhere", was, "", headroom.Expect(3), pin.WhyOperator); !errors.Is(err, ErrNoPin) || store.Stands("nowhere") != "" {
		t.Errorf("a room without a pin: %v, %v", got, err)
	}
	seen.Store(viewOf(sfu("a", 1)))
	if got, err := signaling.Move(t.Context(), class, back, "", headroom.Expect(3), pin.WhyOperator); !errors.Is(err, ErrNoNodes) {
		t.Errorf("no other node: %v, %v", got, err)
	}
	tight := sfu("b", 1)
	tight.Load.EgressBitsPerSecond = tight.Load.CeilingBitsPerSecond / 2
	seen.Store(viewOf(sfu("a", 1), tight))
	if got, err := signaling.Move(t.Context(), class, back, "", headroom.Expect(250), pin.WhyOperator); !errors.As(err, new(*NoHeadroomError)) || store.Stands(class) != back.Encode() {
		t.Errorf("no headroom: %v, %v", got, err)
	}
}
