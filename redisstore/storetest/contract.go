package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Store is what orchestrator.PinStore, pinowner.LeaseStore and failover.Pins ask for.
type Store interface {
	Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (pin.Pin, pin.Incarnation, error)
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (pin.Pin, pin.Incarnation, error)
	History(ctx context.Context, room ring.RoomID) ([]pin.Change, error)
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error)
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
	Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error)
	Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error)
	Incarnations(ctx context.Context) ([]pin.Incarnation, error)
	Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (bool, error)
}

// Back does what no client would.
type Back interface {
	Damage(room ring.RoomID, text string)       // write what is no pin
	Misuse(room ring.RoomID)                    // nor even a text
	Lose(room ring.RoomID)                      // it expired, or the store forgot
	TimeLeft(room ring.RoomID) time.Duration    // until the pin expires
	Shorten(room ring.RoomID, to time.Duration) // as if time had passed
}

// At makes a valid pin on node.
func At(node string, epoch, nonce uint64) pin.Pin {
	return pin.Pin{
		Fence: pin.Fence{Epoch: epoch, Nonce: nonce}, Node: ring.NodeID(node),
		Boot: pin.BootID(fmt.Sprintf("%013d-%s", epoch, node)), Control: node + ".test:7000",
	}
}

// Contract checks what placement takes for granted of an empty store; each check uses a room of its own.
func Contract(t *testing.T, store Store, back Back) {
	t.Run("claim", func(t *testing.T) { contractClaim(t, store, back) })
	t.Run("swap", func(t *testing.T) { contractSwap(t, store) })
	t.Run("history", func(t *testing.T) { contractHistory(t, store) })
	t.Run("repair", func(t *testing.T) { contractRepair(t, store, back) })
	t.Run("a pin of a later version is left alone", func(t *testing.T) { contractLater(t, store, back) })
	t.Run("refresh", func(t *testing.T) { contractRefresh(t, store, back) })
	t.Run("prolong", func(t *testing.T) { contractProlong(t, store, back) })
	t.Run("remove", func(t *testing.T) { contractRemove(t, store, back) })
	t.Run("concurrent claims have one winner", func(t *testing.T) { contractOneWinner(t, store) })
	t.Run("concurrent swaps have one winner", func(t *testing.T) { contractOneMover(t, store) })
	t.Run("a claim and a swap tell the incarnation", func(t *testing.T) { contractIncarnation(t, store) })
	t.Run("a cancelled context is an error", func(t *testing.T) { contractCancelled(t, store) })
}

func contractClaim(t *testing.T, store Store, back Back) {
	ctx, a, b := t.Context(), At("a", 1000, 1), At("b", 1001, 2)
	if _, ok, err := store.Get(ctx, "claim"); ok || err != nil {
		t.Fatalf("Get of an absent pin = %v, %v, want none", ok, err)
	}
	expect(t, "first claim", a)(claim(ctx, store, "claim", a))
	expect(t, "second claim, higher fence or not", a)(claim(ctx, store, "claim", b))
	expect(t, "a claim repeated after a lost reply", a)(claim(ctx, store, "claim", a))
	if p, ok, err := store.Get(ctx, "claim"); p != a || !ok || err != nil {
		t.Fatalf("Get = %v, %v, %v, want the first claim", p, ok, err)
	}
	if left := back.TimeLeft("claim"); left < 59*time.Minute || left > time.Hour {
		t.Errorf("a claim expires in %v, want an hour", left)
	}
	back.Lose("claim")
	expect(t, "claim after expiry", b)(claim(ctx, store, "claim", b))
	if _, _, err := store.Claim(ctx, "claim", pin.Pin{}, ""); err == nil {
		t.Error("a pin that is not valid was claimed")
	}
}

func contractHistory(t *testing.T, store Store) {
	ctx, room := t.Context(), ring.RoomID("history")
	now := At("n0", 1000, 1)
	if _, _, err := store.Claim(ctx, room, now, ""); err != nil {
		t.Fatal(err)
	}
	if h, err := store.History(ctx, room); len(h) != 0 || err != nil {
		t.Errorf("the history of a claim is %+v, %v", h, err)
	}
	reasoned, other, why := ring.RoomID("history-of-a-claim"), At("n1", 1001, 2), pin.PassedOver+"a (101 %)"
	for range 2 { // the second as after a lost reply
		if _, _, err := store.Claim(ctx, reasoned, now, why); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Claim(ctx, reasoned, other, pin.PassedOver+"b (102 %)"); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := store.History(ctx, reasoned); len(h) != 1 || err != nil || !h[0].IsClaim() || h[0].Epoch != 1000 || h[0].To != "n0" || h[0].Why != why || time.Since(h[0].At).Abs() > time.Hour {
		t.Errorf("the history of a claim with a reason is %+v, %v", h, err)
	}
	const moves = pin.MaxChanges + 4
	for n := range uint64(moves) {
		next := At(fmt.Sprint("n", n+1), 1001+n, 1)
		if _, _, err := store.Swap(ctx, room, now, next, fmt.Sprint("reason ", n)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Swap(ctx, room, now, next, "it came too late"); err != nil {
			t.Fatal(err)
		}
		now = next
	}
	h, err := store.History(ctx, room)
	if len(h) != pin.MaxChanges || err != nil {
		t.Fatalf("%d changes, %v, want the latest %d", len(h), err, pin.MaxChanges)
	}
	if time.Since(h[0].At).Abs() > time.Hour {
		t.Errorf("the last change was at %v", h[0].At)
	}
	for i := range h {
		h[i].At = time.Time{}
	}
	for i, got := range h {
		n := uint64(moves - 1 - i)
		want := pin.Change{Epoch: 1001 + n, From: ring.NodeID(fmt.Sprint("n", n)), To: ring.NodeID(fmt.Sprint("n", n+1)), Why: fmt.Sprint("reason ", n)}
		if got != want {
			t.Errorf("change %d is %+v, want %+v", i, got, want)
		}
	}
}

func contractSwap(t *testing.T, store Store) {
	ctx, a, b, c := t.Context(), At("a", 1000, 1), At("b", 1001, 2), At("c", 1001, 3)
	expect(t, "swap of an absent pin writes nothing", pin.Pin{})(swap(ctx, store, "swap", a, b))
	if _, ok, _ := store.Get(ctx, "swap"); ok {
		t.Fatal("a swap of an absent pin wrote one")
	}
	expect(t, "claim", a)(claim(ctx, store, "swap", a))
	expect(t, "swap", b)(swap(ctx, store, "swap", a, b))
	expect(t, "a swap that finds its own value has succeeded", b)(swap(ctx, store, "swap", a, b))
	expect(t, "a swap of what no longer stands", b)(swap(ctx, store, "swap", a, c))
	twin := a
	twin.Fence.Nonce++
	expect(t, "a swap whose old pin differs in the nonce only", b)(swap(ctx, store, "swap", twin, c))
	if _, _, err := store.Swap(ctx, "swap", b, pin.Pin{}, ""); err == nil {
		t.Error("a pin that is not valid was swapped in")
	}
}

func contractRepair(t *testing.T, store Store, back Back) {
	ctx, a, b := t.Context(), At("a", 1000, 1), At("b", 1001, 2)
	for i, damage := range []string{"garbage", "", "1|5|0|n|b|c", "1|1000|0000000000000001|a|b", "\x00\xff"} {
		room := ring.RoomID(fmt.Sprintf("repair-%d", i))
		back.Damage(room, damage)
		for name, err := range map[string]error{
			"Claim":   third(store.Claim(ctx, room, a, "")),
			"Swap":    third(store.Swap(ctx, room, b, a, "")),
			"Get":     third(store.Get(ctx, room)),
			"Prolong": second(store.Prolong(ctx, room)),
		} {
			var corrupt *pin.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Raw != damage || corrupt.Room != room || !errors.Is(err, pin.ErrCorrupt) {
				t.Errorf("%s of %q: %v, want a *pin.CorruptError with the text", name, damage, err)
			}
		}
		expect(t, "repair", a)(store.Repair(ctx, room, damage, a))
		expect(t, "a repair that finds its own value", a)(store.Repair(ctx, room, damage, a))
		expect(t, "a repair that comes too late", a)(store.Repair(ctx, room, damage, b))
	}
	back.Misuse("misused")
	found, err := store.Refresh(ctx, []pin.Holding{{Room: "misused", Pin: a}}, always)
	if err != nil || !errors.Is(found[0].Err, pin.ErrCorrupt) {
		t.Errorf("Refresh of a key of another type = %v, %v, want a corrupt pin", found, err)
	}
	var corrupt *pin.CorruptError
	for _, err := range []error{
		third(store.Get(ctx, "misused")), second(store.Prolong(ctx, "misused")),
		third(store.Swap(ctx, "misused", b, a, "")), third(store.Claim(ctx, "misused", a, "")),
	} {
		if !errors.As(err, &corrupt) {
			t.Fatalf("a key of another type: %v, want a *pin.CorruptError", err)
		}
	}
	expect(t, "repair of a key of another type", a)(store.Repair(ctx, "misused", corrupt.Raw, a))
	expect(t, "a second repair of it", a)(store.Repair(ctx, "misused", corrupt.Raw, b))
	expect(t, "repair of an absent pin", pin.Pin{})(store.Repair(ctx, "repair-absent", "garbage", a))
}

// Later is a pin that a later version of this program wrote.
const Later = "2|5000|0000000000000001|a|0000000000001-a|a.test:7000|more"

func contractLater(t *testing.T, store Store, back Back) {
	ctx, room, a, b := t.Context(), ring.RoomID("later"), At("a", 1000, 1), At("b", 1001, 2)
	back.Damage(room, Later)
	for name, err := range map[string]error{
		"Claim":   third(store.Claim(ctx, room, a, "")),
		"Swap":    third(store.Swap(ctx, room, b, a, "")),
		"Get":     third(store.Get(ctx, room)),
		"Prolong": second(store.Prolong(ctx, room)),
	} {
		if !errors.Is(err, pin.ErrLater) || errors.Is(err, pin.ErrCorrupt) {
			t.Errorf("%s: %v, want pin.ErrLater", name, err)
		}
	}
	if found, err := store.Refresh(ctx, []pin.Holding{{Room: room, Pin: a}}, always); err != nil || !errors.Is(found[0].Err, pin.ErrLater) || found[0].Rewritten {
		t.Errorf("Refresh = %v, %v, want pin.ErrLater", found, err)
	}
	if removed, err := store.Remove(ctx, room, a); removed || err != nil && !errors.Is(err, pin.ErrLater) {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	// Only who has exactly this text replaces it: it still stands.
	expect(t, "what stands", a)(store.Repair(ctx, room, Later, a))
}

func always(pin.Holding) bool { return true }

// A pin is removed only while exactly that one stands, and not while the next claim could be below it.
func contractRemove(t *testing.T, store Store, back Back) {
	ctx := t.Context()
	old, young := At("a", uint64(time.Now().Add(-time.Minute).UnixMilli()), 1), At("a", uint64(time.Now().UnixMilli()), 1)
	moved, twin := At("b", old.Fence.Epoch+1, 2), old
	twin.Fence.Nonce++
	remove := func(what string, room ring.RoomID, p pin.Pin, want bool) {
		t.Helper()
		if removed, err := store.Remove(ctx, room, p); removed != want || err != nil {
			t.Errorf("Remove of %s = %v, %v, want %v", what, removed, err, want)
		}
	}
	remove("an absent pin", "remove", old, true)
	expect(t, "claim", old)(claim(ctx, store, "remove", old))
	remove("a pin whose nonce differs", "remove", twin, false)
	remove("what stands", "remove", old, true)
	remove("what was removed, for the answer was lost", "remove", old, true)
	expect(t, "claim of a removed pin", old)(claim(ctx, store, "remove", old))
	expect(t, "swap", moved)(swap(ctx, store, "remove", old, moved))
	remove("a pin that was moved", "remove", old, false)
	expect(t, "claim of what was not removed", moved)(claim(ctx, store, "remove", old))
	expect(t, "claim", young)(claim(ctx, store, "remove young", young))
	remove("a young pin", "remove young", young, false)
	expect(t, "claim of what was not removed", young)(claim(ctx, store, "remove young", old))
	back.Misuse("remove misused")
	remove("a key of another type", "remove misused", old, false)
}

func contractRefresh(t *testing.T, store Store, back Back) {
	ctx, a, b := t.Context(), At("a", 1000, 1), At("b", 1001, 2)
	expect(t, "claim", a)(claim(ctx, store, "mine", a))
	expect(t, "claim", b)(claim(ctx, store, "foreign", b))
	for _, room := range []ring.RoomID{"mine", "foreign"} {
		back.Shorten(room, time.Minute)
	}
	back.Damage("damaged", "garbage")
	held := []pin.Holding{{Room: "mine", Pin: a}, {Room: "foreign", Pin: a}, {Room: "missing", Pin: a}, {Room: "damaged", Pin: a}}
	unread := []pin.Holding{{Room: "read", Pin: a}}
	expect(t, "claim", a)(claim(ctx, store, "read", a))
	back.Shorten("read", time.Minute)
	if found, err := store.Refresh(ctx, unread, func(pin.Holding) bool { return false }); err != nil || found[0] != (pin.Found{Room: "read", Stands: a}) {
		t.Fatalf("Refresh that prolongs nothing = %v, %v", found, err)
	}
	if left := back.TimeLeft("read"); left > time.Minute {
		t.Errorf("a pin that was only read expires in %v, want a minute as before", left)
	}
	found, err := store.Refresh(ctx, held, always)
	if err != nil || len(found) != len(held) {
		t.Fatalf("Refresh = %v, %v, want one answer a room", found, err)
	}
	for i, want := range []pin.Found{
		{Room: "mine", Stands: a, Prolonged: true}, {Room: "foreign", Stands: b, Prolonged: true}, {Room: "missing", Stands: a, Rewritten: true, Prolonged: true},
	} {
		if found[i] != want {
			t.Errorf("found %+v, want %+v", found[i], want)
		}
	}
	if f := found[3]; !errors.Is(f.Err, pin.ErrCorrupt) || f.Room != "damaged" || !f.Stands.IsZero() {
		t.Errorf("found %+v, want a corrupt pin", f)
	}
	for _, room := range []ring.RoomID{"mine", "foreign", "missing"} {
		if left := back.TimeLeft(room); left < 59*time.Minute {
			t.Errorf("the pin of %q expires in %v after a refresh, want an hour", room, left)
		}
	}
	if p, _, err := store.Get(ctx, "missing"); p != a || err != nil {
		t.Errorf("the missing pin is %v, %v after a refresh, want the owner's", p, err)
	}
	if found, err := store.Refresh(ctx, nil, always); len(found) != 0 || err != nil {
		t.Errorf("Refresh of nothing = %v, %v", found, err)
	}
}

func contractProlong(t *testing.T, store Store, back Back) {
	ctx, a := t.Context(), At("a", 1000, 1)
	expect(t, "prolong of an absent pin writes nothing", pin.Pin{})(store.Prolong(ctx, "prolong"))
	if _, ok, err := store.Get(ctx, "prolong"); ok || err != nil {
		t.Fatalf("Get = %v, %v after Prolong of an absent pin, want none", ok, err)
	}
	expect(t, "claim", a)(claim(ctx, store, "prolong", a))
	back.Shorten("prolong", time.Minute)
	expect(t, "prolong", a)(store.Prolong(ctx, "prolong"))
	if left := back.TimeLeft("prolong"); left < 59*time.Minute || left > time.Hour {
		t.Errorf("a pin that was prolonged expires in %v, want an hour", left)
	}
}

func contractOneWinner(t *testing.T, store Store) {
	winners := race(func(i uint64) (pin.Pin, error) {
		return claim(t.Context(), store, "one-winner", At("n", 1000+i%3, i+1))
	})
	same(t, winners)
}

func contractOneMover(t *testing.T, store Store) {
	old := At("old", 1000, 1)
	expect(t, "claim", old)(claim(t.Context(), store, "one-mover", old))
	winners := race(func(i uint64) (pin.Pin, error) {
		return swap(t.Context(), store, "one-mover", old, At("n", 1001, i+1))
	})
	same(t, winners)
}

// Claims and swaps, won or lost, are in an incarnation that owners are told of.
func contractIncarnation(t *testing.T, store Store) {
	present, err := store.Incarnations(t.Context())
	if err != nil || len(present) == 0 {
		t.Fatalf("Incarnations = %v, %v", present, err)
	}
	for i := range 20 { // on a cluster they meet every master
		room := ring.RoomID(fmt.Sprintf("incarnation-%d", i))
		for n := range uint64(2) {
			if _, in, err := store.Claim(t.Context(), room, At("a", 1000, n+1), ""); err != nil || !pin.IncarnationsOf(present).Has(in) {
				t.Fatalf("a claim is in incarnation %x, %v, want one of %x", in, err, present)
			}
			if _, in, err := store.Swap(t.Context(), room, At("a", 1000, n+1), At("a", 1000, n+1), ""); err != nil || !pin.IncarnationsOf(present).Has(in) {
				t.Fatalf("a swap is in incarnation %x, %v, want one of %x", in, err, present)
			}
		}
	}
	if again, err := store.Incarnations(t.Context()); err != nil || pin.IncarnationsOf(again) != pin.IncarnationsOf(present) {
		t.Fatalf("Incarnations = %x, %v, then %x with nothing lost", present, err, again)
	}
}

func contractCancelled(t *testing.T, store Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := store.Claim(ctx, "cancelled", At("a", 1000, 1), "")
	if err == nil || errors.Is(err, pin.ErrCorrupt) {
		t.Errorf("Claim with a cancelled context = %v, want an error that is no answer", err)
	}
	if _, err := store.Refresh(ctx, []pin.Holding{{Room: "cancelled", Pin: At("a", 1000, 1)}}, always); err == nil {
		t.Error("Refresh with a cancelled context returned no error")
	}
}

type result struct {
	pin pin.Pin
	err error
}

// race does 50 of the same at once.
func race(do func(i uint64) (pin.Pin, error)) []result {
	results := make([]result, 50)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i].pin, results[i].err = do(uint64(i)) })
	}
	all.Wait()
	return results
}

func same(t *testing.T, results []result) {
	t.Helper()
	for _, r := range results {
		if r.err != nil || r.pin != results[0].pin || r.pin.IsZero() {
			t.Fatalf("%v, %v, want %v for everybody", r.pin, r.err, results[0].pin)
		}
	}
}

// expect checks the two results of a write.
func expect(t *testing.T, what string, want pin.Pin) func(pin.Pin, error) {
	return func(got pin.Pin, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Fatalf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
}

func second(_ pin.Pin, err error) error { return err }

func third[T any](_ pin.Pin, _ T, err error) error { return err }

// claim leaves the incarnation out.
func claim(ctx context.Context, store Store, room ring.RoomID, p pin.Pin) (pin.Pin, error) {
	winner, _, err := store.Claim(ctx, room, p, "")
	return winner, err
}

func swap(ctx context.Context, store Store, room ring.RoomID, old, next pin.Pin) (pin.Pin, error) {
	current, _, err := store.Swap(ctx, room, old, next, "")
	return current, err
}
