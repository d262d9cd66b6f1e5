package orchestrator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// class is a room that the ring gives to a, then b, then c.
const class ring.RoomID = "class"

// forgetful is a signaling node on a store in its second incarnation, which is empty. a, b and c are synced in the
// given one.
func forgetful(reported pin.Incarnation) (*Orchestrator, *testkit.MemoryStore, *addresses, *views) {
	store := testkit.NewMemoryStore()
	store.StartIn(2)
	where := &addresses{holds: make(map[string]map[ring.RoomID]pin.Pin), unanswered: make(map[string]error)}
	seen := fixed(reporting(reported))
	return New(store, seen, where, patient(), quiet), store, where, seen
}

// reporting is a view of a, b and c that have all synced their pins in one incarnation.
func reporting(in pin.Incarnation) *cluster.View {
	var nodes []cluster.Node
	for _, id := range []string{"a", "b", "c"} {
		node := sfu(id, 1)
		node.Load.Synced = pin.IncarnationsOf([]pin.Incarnation{in})
		nodes = append(nodes, node)
	}
	return viewOf(nodes...)
}

func (a *addresses) open(node string, room ring.RoomID, p pin.Pin) {
	a.holds[node+".test:7000"] = map[ring.RoomID]pin.Pin{room: p}
}

func TestClaimIsHandedBackToWhoHasTheRoomOpen(t *testing.T) {
	signaling, store, where, _ := forgetful(1)
	held := pinAt("b", 1, 5000, 7)
	where.open("b", class, held)
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !held.Fence.Less(got.Fence) || got.Fence.Fresh() {
		t.Fatalf("Place = %v, %v, want a higher pin of b, which has the room open", got, err)
	}
	if store.Stands(class) != got.Encode() || store.Fault() != "" {
		t.Errorf("the store has %q, and %s", store.Stands(class), store.Fault())
	}
	if len(signaling.ledger.reserved) != 0 {
		t.Errorf("egress stays reserved for a room that is open already: %v", signaling.ledger.reserved)
	}
	where.unanswered["b.test:7000"] = errors.New("it hangs")
	if again, err := signaling.Place(t.Context(), class, headroom.Room{}); again != got || err != nil {
		t.Errorf("the next join got %v, %v: what is verified need not be verified again", again, err)
	}
}

func TestClaimIsVerifiedOnlyWhileAnOwnerHasNotReported(t *testing.T) {
	for name, c := range map[string]struct {
		reported pin.Incarnation
		open     pin.Pin // what b has open
		dead     bool    // nobody listens at b
		silent   bool    // b does not answer
		want     string  // node
	}{
		"everybody has reported":      {reported: 2, silent: true, want: "a"},
		"nobody has it open":          {reported: 1, want: "a"},
		"another has it open":         {reported: 1, open: pinAt("b", 1, 5000, 7), want: "b"},
		"its node has it open, lower": {reported: 1, open: pinAt("a", 1, 5000, 7), want: "a"},
		"one that is dead is asked":   {reported: 1, dead: true, want: "a"},
		"one does not answer":         {reported: 1, silent: true, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			signaling, store, where, _ := forgetful(c.reported)
			where.open("b", class, c.open)
			if c.dead {
				where.unanswered["b.test:7000"] = ErrNobodyThere
			}
			if c.silent {
				where.unanswered["b.test:7000"] = errors.New("it hangs")
			}
			got, err := signaling.Place(t.Context(), class, headroom.Room{})
			if err != nil || string(got.Node) != c.want || store.Stands(class) != got.Encode() {
				t.Fatalf("Place = %v, %v, want a pin of %s", got, err, c.want)
			}
			if !c.silent || c.reported == 2 {
				return
			}
			// The next join, through any signaling node, must not take what stands for verified.
			delete(where.unanswered, "b.test:7000")
			where.open("b", class, pinAt("b", 1, 5000, 7))
			if got, err = signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Node != "b" {
				t.Fatalf("the next join got %v, %v, want b, which has the room open", got, err)
			}
		})
	}
}

// An owner above the claim on the very node that was claimed: its room would refuse the lower pin.
func TestClaimBelowTheHoldersFenceIsRaised(t *testing.T) {
	signaling, store, where, _ := forgetful(1)
	held := pinAt("a", 1, uint64(time.Now().Add(time.Hour).UnixMilli()), 7)
	where.holds["a.test:7000"] = map[ring.RoomID]pin.Pin{class: held}
	got, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil || got.Boot != held.Boot || !held.Fence.Less(got.Fence) || store.Stands(class) != got.Encode() {
		t.Fatalf("Place = %v, %v, want a pin of a above %v", got, err, held.Fence)
	}
}

// Rehome's dead node is not asked, and one that has the room open keeps it.
func TestRehomingOnAnEmptyStore(t *testing.T) {
	signaling, _, where, _ := forgetful(1)
	dead := pinAt("a", 1, 5000, 7)
	where.unanswered["a.test:7000"] = errors.New("it hangs")
	moved := pinAt("c", 1, 5001, 8)
	where.holds["c.test:7000"] = map[ring.RoomID]pin.Pin{class: moved}
	got, err := signaling.Rehome(t.Context(), class, dead, headroom.Room{})
	if err != nil || got.Boot != moved.Boot || !moved.Fence.Less(got.Fence) {
		t.Fatalf("Rehome = %v, %v, want c, where another signaling node moved the room to before the store forgot", got, err)
	}
}

// The store lost a move and shows a dead process's pin. Whoever moves the room asks the owners that are not synced,
// and hands it to the one that serves it.
func TestRehomingFromAPinThatStandsAgain(t *testing.T) {
	dead, live := pinAt("a", 1, 5000, 7), pinAt("b", 1, 5001, 8)
	move := func(signaling *Orchestrator, how string) (pin.Pin, error) {
		if how == "PlaceAgain" {
			return signaling.PlaceAgain(t.Context(), class, dead, headroom.Room{})
		}
		return signaling.Rehome(t.Context(), class, dead, headroom.Room{})
	}
	for _, how := range []string{"Rehome", "PlaceAgain"} {
		for range 8 { // The nonce of the move is above that of the owner, or below.
			signaling, store, where, _ := forgetful(1)
			store.Put(class, dead.Encode())
			where.open("b", class, live)
			got, err := move(signaling, how)
			if err != nil || got.Boot != live.Boot || !live.Fence.Less(got.Fence) || store.Stands(class) != got.Encode() {
				t.Fatalf("%s = %v, %v, want b, which serves the room", how, got, err)
			}
		}
		// Another signaling node finds the move of one that died before it asked.
		signaling, store, where, _ := forgetful(1)
		store.Put(class, pinAt("c", 1, 5001, 9).Encode())
		where.open("b", class, live)
		if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got.Boot != live.Boot {
			t.Fatalf("Place = %v, %v, want b, which serves the room", got, err)
		}
		signaling, store, where, _ = forgetful(2)
		store.Put(class, dead.Encode())
		for _, id := range []string{"a", "b", "c"} {
			where.unanswered[id+".test:7000"] = errors.New("it hangs")
		}
		if got, err := move(signaling, how); err != nil || got.Fence.Epoch != 5001 || store.Calls() != 1 {
			t.Fatalf("%s = %v, %v in %d calls, want one, and nobody asked: all have reported", how, got, err, store.Calls())
		}
	}
}

func TestRememberedRoomIsJoinedWithoutAStore(t *testing.T) {
	signaling, store, where, seen := forgetful(2)
	known, err := signaling.Place(t.Context(), class, headroom.Room{})
	if err != nil {
		t.Fatal(err)
	}
	store.Fail(errors.New("the store is away"))
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); got != known || err != nil {
		t.Errorf("a join of a known room got %v, %v, want %v", got, err, known)
	}
	if _, err := signaling.Place(t.Context(), "unheard-of", headroom.Room{}); !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("a new room: %v, want ErrStoreUnavailable", err)
	}
	if _, err := signaling.PlaceAgain(t.Context(), class, known, headroom.Room{}); !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("a refused room: %v, want ErrStoreUnavailable", err)
	}
	where.open("b", "elsewhere", pinAt("b", 1, 5000, 7))
	if got, err := signaling.Place(t.Context(), "elsewhere", headroom.Room{}); err != nil || got.Node != "b" {
		t.Errorf("a room that this node never heard of, open on b: %v, %v", got, err)
	}
	seen.Store(viewOf(sfu("b", 1), sfu("c", 1)))
	if _, err := signaling.Place(t.Context(), class, headroom.Room{}); !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("its owner is no longer seen: %v, want ErrStoreUnavailable", err)
	}
	seen.Store(reporting(2))
	signaling.Observe(class, pin.Fence{Epoch: known.Fence.Epoch + 1})
	if _, err := signaling.Place(t.Context(), class, headroom.Room{}); !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("a higher pin was heard of: %v, want ErrStoreUnavailable", err)
	}
}

// Without a store the owners are asked, because the room may have moved. What none has open is where the store showed
// it lately, or nowhere.
func TestRoomIsJoinedWithoutAStoreWhereItIsOpen(t *testing.T) {
	above := func(known pin.Pin, node string) pin.Pin { return pinAt(node, 1, known.Fence.Epoch+5, 7) }
	below := func(known pin.Pin, node string) pin.Pin { return pinAt(node, 1, known.Fence.Epoch-5, 7) }
	for name, c := range map[string]struct {
		open       func(known pin.Pin, node string) pin.Pin
		at         string
		unanswered string
		observe    bool // a node has told of the fence that it is open under
		later      time.Duration
		joins      bool
		where      ring.NodeID
	}{
		"open nowhere":                               {joins: true, where: "a"},
		"open nowhere, for long":                     {later: rememberedFor},
		"open nowhere, as far as can be asked":       {unanswered: "b", joins: true, where: "a"},
		"open where it was":                          {open: func(known pin.Pin, _ string) pin.Pin { return known }, at: "a", later: 10 * rememberedFor, joins: true, where: "a"},
		"open where it was, and b does not answer":   {open: func(known pin.Pin, _ string) pin.Pin { return known }, at: "a", unanswered: "b", joins: true, where: "a"},
		"it has moved":                               {open: above, at: "b", joins: true, where: "b"},
		"it has moved, and its fence was heard of":   {open: above, at: "b", observe: true, joins: true, where: "b"},
		"open elsewhere under a lower pin":           {open: below, at: "b"},
		"open where it was, under a lower pin still": {open: below, at: "a", joins: true, where: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signaling, store, where, _ := forgetful(2)
				known, err := signaling.Place(t.Context(), class, headroom.Room{})
				if err != nil || known.Node != "a" {
					t.Fatalf("Place = %v, %v", known, err)
				}
				want := known
				if c.open != nil {
					held := c.open(known, c.at)
					where.open(c.at, class, held)
					if known.Fence.Less(held.Fence) {
						want = held
					}
					if c.observe {
						signaling.Observe(class, held.Fence)
					}
				}
				if c.unanswered != "" {
					where.unanswered[c.unanswered+".test:7000"] = errors.New("it hangs")
				}
				store.Fail(errors.New("the store is away"))
				<-time.After(c.later)
				got, err := signaling.Place(t.Context(), class, headroom.Room{})
				switch {
				case c.joins && (err != nil || got != want || got.Node != c.where):
					t.Errorf("Place = %v, %v, want %v", got, err, want)
				case !c.joins && !errors.Is(err, ErrStoreUnavailable):
					t.Errorf("Place = %v, %v, want ErrStoreUnavailable", got, err)
				}
			})
		})
	}
}
