package orchestrator

import (
	"testing"

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
	store.Lose()
	store.Put(class, known.Encode()) // An old file was restored, and meanwhile the room was opened elsewhere.
	held := pinAt("b", 1, known.Fence.Epoch+5, 7)
	where.open("b", class, held)
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !held.Fence.Less(got.Fence) || store.Stands(class) != got.Encode() {
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
	store.Put(class, lower.Encode())
	calls := 0
	store.Meanwhile(func() {
		if calls++; calls == 2 { // The first claim found the lower pin, nobody had the room open, and this is the write.
			where.open("b", class, lower)
		}
	})
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != lower.Boot || !known.Fence.Less(got.Fence) || store.Stands(class) != got.Encode() {
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
	store.Put(class, pinAt("a", 1, 6000, pin.NewFreshNonce()).Encode())
	held := pinAt("b", 1, 5000, 7)
	where.open("b", class, held)
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Boot != held.Boot {
		t.Fatalf("Place = %v, %v, though b serves the room", got, err)
	}
}

// The store shows a lower pin than a refused node's signaling node knows. The refusal says nothing about that pin's
// node, which has people in the room.
func TestRefusalDoesNotMoveARoomThatAnotherNodeHasOpen(t *testing.T) {
	signaling, store, where, _ := forgetful(2)
	refused, held := pinAt("a", 1, 6000, 3), pinAt("c", 1, 5001, 7)
	store.Put(class, held.Encode())
	where.open("c", class, held)
	got, err := signaling.PlaceAgain(t.Context(), class, refused, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !refused.Fence.Less(got.Fence) || store.Stands(class) != got.Encode() {
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
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Boot == held.Boot || store.Stands(class) != got.Encode() {
		t.Fatalf("Place = %v, %v, want the claim to stand: b is dead", got, err)
	}
}
