package orchestrator

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
)

// A verification in one incarnation says nothing in another: a restored store shows pins that a signaling node knows
// well, of rooms that have moved since.
func TestKnownPinIsVerifiedAgainInAnotherIncarnation(t *testing.T) {
	signaling, store, where, _ := forgetful(1)
	known, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || known.Node != "a" {
		t.Fatalf("Place = %v, %v", known, err)
	}
	store.lose()
	store.put(class, known.Encode()) // An old file was restored, and meanwhile the room was opened elsewhere.
	held := pinAt("b", 1, known.Fence.Epoch+5, 7)
	where.open("b", class, held)
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !held.Fence.Less(got.Fence) || store.stands(class) != got.Encode() {
		t.Fatalf("Place = %v, %v, want a pin of b, which serves the room", got, err)
	}
}

// A pin that is put back over a lower one is verified after the write too: the room may have opened under the lower
// one meanwhile.
func TestPinThatIsPutBackIsVerifiedAfterTheWrite(t *testing.T) {
	signaling, store, where, _ := forgetful(1)
	known, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || known.Node != "a" {
		t.Fatalf("Place = %v, %v", known, err)
	}
	lower := pinAt("b", 1, known.Fence.Epoch, 0) // Claimed in the same millisecond, after the store forgot.
	store.put(class, lower.Encode())
	calls := 0
	store.meanwhile(func() {
		if calls++; calls == 2 { // The first claim found the lower pin, nobody had the room open, and this is the write.
			where.open("b", class, lower)
		}
	})
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != lower.Boot || !known.Fence.Less(got.Fence) || store.stands(class) != got.Encode() {
		t.Fatalf("Place = %v, %v after %d calls, want a pin of b above %v: it has opened the room", got, err, calls, known.Fence)
	}
}

// Where no node takes rooms, the pin that is read may have been claimed by somebody who died before asking.
func TestPinThatIsOnlyReadIsVerified(t *testing.T) {
	signaling, store, where, seen := forgetful(1)
	full := reporting(1)
	for id, node := range full.Nodes {
		node.Load.EgressBitsPerSecond = node.Load.CeilingBitsPerSecond
		full.Nodes[id] = node
	}
	seen.Store(full)
	store.put(class, pinAt("a", 1, 6000, pin.NewFreshNonce()).Encode())
	held := pinAt("b", 1, 5000, 7)
	where.open("b", class, held)
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Boot != held.Boot {
		t.Fatalf("Place = %v, %v, though b serves the room", got, err)
	}
}

// Somebody brings a pin from before a data loss, while the room is open here and a third node has claimed it: the
// owner reclaims the room, and its people stay.
func TestNewcomerDoesNotMoveAnOpenRoom(t *testing.T) {
	fresh := pin.Fence{Epoch: 9000, Nonce: pin.NewFreshNonce()}
	for name, c := range map[string]struct {
		stands pin.Pin
		keeps  bool
	}{
		"claimed by who could not know": {stands: pinAt("b", 1, fresh.Epoch, fresh.Nonce), keeps: true},
		"moved by somebody who knew":    {stands: pinAt("b", 1, 9000, 9)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultPinOwnerConfig()
			cfg.Majority = func() bool { return true }
			withOwner(t, cfg, func(t *testing.T, own *PinOwner, s *memoryStore, r *rooms, ours pin.Pin) {
				s.put("r", c.stands.Encode())
				brought := pinAt("a", 1, 8000, 3)
				err := own.Confirm(t.Context(), "r", brought)
				stands, _ := pin.Parse(s.stands("r"))
				var fenced *pin.FencedError
				if !errors.As(err, &fenced) || fenced.Current != stands || c.keeps != (stands.Boot == ours.Boot) || !openingOf(t, own, "r").IsZero() {
					t.Errorf("Confirm = %v, and %v stands", err, stands)
				}
				if told := r.told(); len(told) != 1 || told[0].Pin != stands {
					t.Errorf("the holder was told %v, want %v", told, stands)
				}
			})
		})
	}
}

// The same, and the store loses data again during the reclaim. The owner's pin is then lower than the one that was
// brought, so nobody is told that it fences.
func TestNewcomerIsNotFencedByALowerPin(t *testing.T) {
	withOwner(t, DefaultPinOwnerConfig(), func(t *testing.T, own *PinOwner, s *memoryStore, _ *rooms, ours pin.Pin) {
		s.put("r", pinAt("b", 1, 9000, pin.NewFreshNonce()).Encode())
		before := s.calls
		s.meanwhile(func() {
			if s.calls == before+2 { // The pin was read, and this is the write over it.
				s.put("r", ours.Encode())
			}
		})
		if err := own.Confirm(t.Context(), "r", pinAt("a", 1, 8000, 3)); !errors.Is(err, pin.ErrMissing) || errors.Is(err, pin.ErrFenced) {
			t.Errorf("Confirm = %v while %q stands, want that the pin is missing", err, s.stands("r"))
		}
	})
}

// After a data loss each owner refreshes every second, so that fenced owners stop soon.
func TestOwnerLooksOftenAfterALoss(t *testing.T) {
	withOwner(t, DefaultPinOwnerConfig(), func(t *testing.T, _ *PinOwner, s *memoryStore, r *rooms, _ pin.Pin) {
		s.lose()
		after(checkEvery + time.Millisecond) // It has noticed, and has its pin back.
		higher := pinAt("b", 1, 5001, 1)
		s.put("r", higher.Encode())
		after(checkEvery + time.Millisecond)
		if told := r.told(); len(told) != 1 || told[0].Pin != higher {
			t.Errorf("%v after it was fenced the holder was told %v", checkEvery, told)
		}
	})
}

// The store shows a lower pin than a refused node's signaling node knows. The refusal says nothing about that pin's
// node, which has people in the room.
func TestRefusalDoesNotMoveARoomThatAnotherNodeHasOpen(t *testing.T) {
	signaling, store, where, _ := forgetful(2)
	refused, held := pinAt("a", 1, 6000, 3), pinAt("c", 1, 5001, 7)
	store.put(class, held.Encode())
	where.open("c", class, held)
	got, err := signaling.PlaceAgain(t.Context(), class, refused, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !refused.Fence.Less(got.Fence) || store.stands(class) != got.Encode() {
		t.Fatalf("PlaceAgain = %v, %v, want a pin of c above %v: c serves the room", got, err, refused.Fence)
	}
}

// A node says that it has the room open, and dies before the claim is handed back.
func TestRoomIsNotHandedBackToWhoDiedMeanwhile(t *testing.T) {
	signaling, store, where, seen := forgetful(1)
	held := pinAt("b", 1, 5000, 7)
	where.open("b", class, held)
	where.then = func() {
		without := reporting(1)
		delete(without.Nodes, held.Node)
		without.Gone[held.Boot] = cluster.DepartureDead
		seen.Store(without)
	}
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Boot == held.Boot || store.stands(class) != got.Encode() {
		t.Fatalf("Place = %v, %v, want the claim to stand: b is dead", got, err)
	}
}
