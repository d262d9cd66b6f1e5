// Package orchestrator decides where every room lives. It promises that all callers of all processes end on
// the same pin for a room, that epochs only grow, that a placement costs one store round trip whether the room
// is new or pinned (a pin of a dead node costs more), and that whoever comes across a pin whose node is gone moves it.
//
// It is the signaling node's side: place, re-home, explain. The media node's is in pinowner.
//
// It does not know Redis, gossip or gRPC: it is given a store (PinStore), a view of the cluster (Views)
// and a way to ask an address who lives there (Prober). DESIGN.md has the invariants, the states of a pin and the races.
package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// PinStore is the pins' store. Each method is one round trip and repeatable. An error is a *pin.CorruptError, wraps
// pin.ErrLater, or leaves the outcome unknown.
type PinStore interface {
	// Claim writes p unless the room has a pin. It returns the current pin and its incarnation (0: unknown), with
	// waitlist.ErrDoor if the room has a door. why is for the history; empty: none.
	Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (winner pin.Pin, in pin.Incarnation, err error)
	// Swap replaces old if it is current, and returns the current pin; zero: none.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (current pin.Pin, in pin.Incarnation, err error)
	// Repair is Swap for bytes that are no pin.
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (current pin.Pin, err error)
	// Get is false without a pin.
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
	// History has recent swaps, and claims with a reason, newest first.
	History(ctx context.Context, room ring.RoomID) ([]pin.Change, error)
	// Enter is Claim through the room's door. A zero p claims nothing; a zero winner is no pin.
	Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (winner pin.Pin, in pin.Incarnation, a waitlist.Answer, err error)
}

// Views gives the current, immutable view, cheaply.
type Views interface {
	View() *cluster.View
}

// Prober asks media nodes by control address.
type Prober interface {
	// BootAt's error wraps ErrNobodyThere for a refused dial; others prove nothing.
	BootAt(ctx context.Context, control string) (pin.BootID, error)
	// Holds returns the pin under which room is open or opening.
	Holds(ctx context.Context, control string, room ring.RoomID) (pin.Pin, error)
}

// Orchestrator is a signaling node's. It is safe for concurrent use.
type Orchestrator struct {
	store  PinStore
	views  Views
	prober Prober
	cfg    Config
	log    *slog.Logger
	cache  pincache.Cache
	ledger ledger
	probes singleflight.Group
}

// New needs a valid Config.
func New(store PinStore, views Views, prober Prober, cfg Config, log *slog.Logger) *Orchestrator {
	cfg.Panics = cmp.Or(cfg.Panics, panics.New())
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.StoreClock == nil {
		cfg.StoreClock = cfg.Clock
	}
	return &Orchestrator{
		store: store, views: views, prober: prober, cfg: cfg, log: log,
		cache: pincache.Cache{Clock: cfg.StoreClock}, ledger: ledger{clock: cfg.Clock, epsilon: cfg.Epsilon},
	}
}

// Place returns or claims the room's pin. Without a store it returns the live owner's, or a recent one.
// waitlist.ErrDoor comes with a pin: people enter by Enter. Errors: ErrNotSettled, ErrNoNodes, *NoHeadroomError,
// ErrStoreUnavailable (the claim may be written), ErrContended, pin.ErrLater (nothing was written), the context's.
func (o *Orchestrator) Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	p, err := o.swapLoop(ctx, r, current{})
	if err == nil && r.door {
		err = waitlist.ErrDoor
	}
	return p, err
}

// Enter is Place through the room's door. A *waitlist.WaitError admits nobody; other errors may come with an answer
// that admits. ErrStoreUnavailable: no store, or no roster yet after data loss.
func (o *Orchestrator) Enter(ctx context.Context, room ring.RoomID, expect headroom.Room, e waitlist.Entry) (pin.Pin, waitlist.Answer, error) {
	r := o.request(room, expect)
	r.entry = &e
	p, err := o.swapLoop(ctx, r, current{})
	if err == nil && r.admission.Outcome == waitlist.Admitted && !r.admission.Roster {
		// Only a report before the door's answer proves that the roster was written.
		if node := r.asked.Nodes[p.Node]; r.entered == 0 || node.Boot != p.Boot || !node.Load.Synced.Has(r.entered) {
			return pin.Pin{}, r.admission, fmt.Errorf("enter room %s: %w: it may have forgotten who is in the room", room, ErrStoreUnavailable)
		}
	}
	return p, r.admission, err
}

// Rehome moves room off the dead boot of from; without headroom, at the lowest layers. It returns the current pin.
// Errors: as of Place.
func (o *Orchestrator) Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid.boot = from.Boot
	r.why = o.whyRehomed(from)
	r.lowest = r.why != pin.WhyDrain // a drain waits for headroom
	o.cache.Note(room, from)
	return o.swapLoop(ctx, r, current{pin: from})
}

// Plan reserves Rehome's target. Signaling nodes that plan rooms in one order choose alike.
func (o *Orchestrator) Plan(room ring.RoomID, from pin.Pin, expect headroom.Room) {
	if view, err := o.settledView(); err == nil && !expect.Unreserved {
		o.ledger.plan(view, room, expect, avoidance{boot: from.Boot}, o.whyRehomed(from) != pin.WhyDrain)
	}
}

// PlaceAgain is Rehome off a node that refused the room. Other rooms avoid it for a moment.
func (o *Orchestrator) PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid.node = refused.Node
	r.refused = refused.Fence
	r.why = whyRefused
	o.cache.Note(room, refused)
	o.ledger.refuse(room, refused.Boot)
	return o.swapLoop(ctx, r, current{pin: refused})
}

// Observe makes later pins higher than f, which must never come from a client.
func (o *Orchestrator) Observe(room ring.RoomID, f pin.Fence) {
	if !f.IsZero() {
		o.cache.Note(room, pin.Pin{Fence: f})
	}
}

// Opened means that load reports from chargedInReport on include the room, so its reservation ends.
func (o *Orchestrator) Opened(room ring.RoomID, node ring.NodeID, chargedInReport uint64) {
	o.ledger.opened(room, node, chargedInReport)
}

func (o *Orchestrator) request(room ring.RoomID, expect headroom.Room) *request {
	return &request{room: room, expect: expect, left: o.cfg.StoreBudget, lowest: expect.Running}
}

func (o *Orchestrator) settledView() (*cluster.View, error) {
	view := o.views.View()
	if view == nil || !view.Settled {
		return nil, ErrNotSettled
	}
	return view, nil
}
