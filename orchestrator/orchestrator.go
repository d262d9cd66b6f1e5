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

// PinStore is the store of the pins. Each method is one round trip and may be repeated. An error is a
// *pin.CorruptError, or wraps pin.ErrLater; after any other error it is unknown whether the write happened.
type PinStore interface {
	// Claim writes p unless the room has a pin. It returns the current pin and the store's incarnation (0: unknown),
	// and waitlist.ErrDoor if the room has a door. The reason why goes into the history, unless it is empty.
	Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (winner pin.Pin, in pin.Incarnation, err error)
	// Swap replaces old by next if old is the current pin. It returns the pin that is current afterwards, or the zero
	// pin if there is none.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (current pin.Pin, in pin.Incarnation, err error)
	// Repair replaces the damaged text raw by next, as Swap replaces a pin.
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (current pin.Pin, err error)
	// Get returns the current pin. The second value is false if the room has none.
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
	// History returns the recent swaps of the room, and its claims that have a reason, newest first.
	History(ctx context.Context, room ring.RoomID) ([]pin.Change, error)
	// Enter is Claim for a person at the room's door. With a zero p it claims nothing. A zero winner means that the
	// room has no pin.
	Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (winner pin.Pin, in pin.Incarnation, a waitlist.Answer, err error)
}

// Views gives the current view of the cluster. The view is immutable, and getting it is cheap.
type Views interface {
	View() *cluster.View
}

// Prober asks media nodes at their control addresses.
type Prober interface {
	// BootAt returns which boot answers at the address. If the dial is refused, the error wraps ErrNobodyThere; any
	// other error proves nothing.
	BootAt(ctx context.Context, control string) (pin.BootID, error)
	// Holds returns the pin under which the node has the room open or is opening it, or the zero pin.
	Holds(ctx context.Context, control string, room ring.RoomID) (pin.Pin, error)
}

// Orchestrator places the rooms of one signaling node. It is safe for concurrent use.
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

// New starts nothing. It needs a valid Config.
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

// Place returns the room's pin, and claims one if there is none. Without a store it returns the pin of the live
// owner, or one that the store showed lately. waitlist.ErrDoor comes with a pin and means that people enter the room
// by Enter. The other errors are ErrNotSettled, ErrNoNodes, *NoHeadroomError, ErrStoreUnavailable (the claim may have
// been written), ErrContended, pin.ErrLater (nothing was written), and the context's.
func (o *Orchestrator) Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error) {
	r, began := o.request(room, expect), o.cfg.Clock()
	p, err := o.swapLoop(ctx, r, current{})
	o.counted(r, began, p, err)
	if err == nil && r.door {
		err = waitlist.ErrDoor
	}
	return p, err
}

// Enter is Place for a person at the room's door. A *waitlist.WaitError means that the person is not admitted. Other
// errors may come with an answer that admits the person. ErrStoreUnavailable also means that the store lost data and
// the room's roster has not been written again yet.
func (o *Orchestrator) Enter(ctx context.Context, room ring.RoomID, expect headroom.Room, e waitlist.Entry) (pin.Pin, waitlist.Answer, error) {
	r, began := o.request(room, expect), o.cfg.Clock()
	r.entry = &e
	p, err := o.swapLoop(ctx, r, current{})
	o.counted(r, began, p, err)
	if err == nil && r.admission.Outcome == waitlist.Admitted && !r.admission.Roster {
		// The store may have lost the roster. Only a load report from before the door's answer proves that the owner
		// had written it again.
		if node := r.asked.Nodes[p.Node]; r.entered == 0 || node.Boot != p.Boot || !node.Load.Synced.Has(r.entered) {
			return pin.Pin{}, r.admission, fmt.Errorf("enter room %s: %w: it may have forgotten who is in the room", room, ErrStoreUnavailable)
		}
	}
	return p, r.admission, err
}

// Rehome moves a room off the dead boot of the pin from. If no node has headroom, it takes one that has headroom for
// the lowest layers. A branch of the room comes before all. It returns the current pin, and Place's errors.
func (o *Orchestrator) Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid = avoidance{boot: from.Boot, branches: o.branches(room), from: from.Node, standby: o.standby(room)}
	r.why = o.whyRehomed(from)
	// A room on a draining node is not hurried to the lowest layers: it waits for headroom.
	r.lowest = r.why != pin.WhyDrain
	o.cache.Note(room, from)
	return o.swapLoop(ctx, r, current{pin: from})
}

// Plan reserves the node to which Rehome will move the room. Signaling nodes that plan the same rooms in the same
// order choose the same nodes.
func (o *Orchestrator) Plan(room ring.RoomID, from pin.Pin, expect headroom.Room) {
	if view, err := o.settledView(); err == nil && !expect.Unreserved {
		o.ledger.plan(view, room, expect, avoidance{boot: from.Boot, branches: o.branches(room), from: from.Node, standby: o.standby(room)}, o.whyRehomed(from) != pin.WhyDrain)
	}
}

func (o *Orchestrator) branches(room ring.RoomID) []pin.BootID {
	if o.cfg.Branches == nil {
		return nil
	}
	return o.cfg.Branches(room)
}

func (o *Orchestrator) standby(room ring.RoomID) pin.BootID {
	if o.cfg.Standby == nil {
		return ""
	}
	return o.cfg.Standby(room)
}

// PlaceAgain moves a room off a node that refused to open it. Other rooms avoid that node for two seconds.
func (o *Orchestrator) PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid.node = refused.Node
	r.refused = refused.Fence
	r.why = whyRefused
	o.cache.Note(room, refused)
	o.ledger.refuse(room, refused.Boot)
	return o.swapLoop(ctx, r, current{pin: refused})
}

// Observe notes a fence that this process was told of, so that later pins of the room are higher. The fence must
// never come from a client.
func (o *Orchestrator) Observe(room ring.RoomID, f pin.Fence) {
	if !f.IsZero() {
		o.cache.Note(room, pin.Pin{Fence: f})
	}
}

// Opened ends the room's reservation: the load reports include the room from number chargedInReport on.
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
