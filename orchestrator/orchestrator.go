// Package orchestrator decides where every room lives. It promises that all callers of all processes end on
// the same pin for a room, that epochs only grow, that a placement costs one store round trip whether the room
// is new or pinned, and that whoever comes across a pin whose node is gone moves it.
//
// Signaling nodes use an Orchestrator (place, re-home, explain). A media node uses a PinOwner, which keeps the
// pins of its rooms alive and learns of higher ones.
//
// It does not know Redis, gossip or gRPC: it is given a store (PinStore, LeaseStore), a view of the cluster (Views)
// and a way to ask an address who lives there (Prober). DESIGN.md has the invariants, the states of a pin and the races.
package orchestrator

import (
	"context"
	"log/slog"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// PinStore is the store of pins as a signaling node sees it. Every method is one round trip and safe to
// repeat. An error is either a *pin.CorruptError or means that the store could not say.
type PinStore interface {
	// Claim writes p unless the room has a pin. It returns the pin that stands and the incarnation of the
	// store that it stands in, zero when that is not known.
	Claim(ctx context.Context, room ring.RoomID, p pin.Pin) (winner pin.Pin, in pin.Incarnation, err error)
	// Swap replaces old by next and returns what stands afterwards. It writes nothing when another pin stands
	// or the key is absent (it then returns zero). A Swap that finds next has succeeded. in is as of Claim.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, in pin.Incarnation, err error)
	// Repair is Swap for a value that is no pin: it replaces exactly those bytes.
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (current pin.Pin, err error)
	// Get returns the pin that stands, and false when there is none.
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
}

// Views gives the present view of the cluster. It must be cheap; the view is immutable.
type Views interface {
	View() *cluster.View
}

// Prober asks control addresses who lives there and what they hold.
type Prober interface {
	// BootAt returns the boot that answers at control, or an error that wraps ErrNobodyThere when the
	// connection was refused. Any other error means unknown.
	BootAt(ctx context.Context, control string) (pin.BootID, error)
	// Holds returns the pin under which the node at control has room open, or none. Errors are as of BootAt.
	Holds(ctx context.Context, control string, room ring.RoomID) (pin.Pin, error)
}

// Orchestrator places and moves rooms for one signaling node. Its methods may be called from any goroutine.
type Orchestrator struct {
	store  PinStore
	views  Views
	prober Prober
	cfg    Config
	log    *slog.Logger
	cache  pinCache
	ledger ledger
	probes singleflight.Group
}

// New returns an orchestrator. The configuration must be valid (Config.Validate).
func New(store PinStore, views Views, prober Prober, cfg Config, log *slog.Logger) *Orchestrator {
	return &Orchestrator{store: store, views: views, prober: prober, cfg: cfg, log: log, cache: pinCache{clock: cfg.Clock}}
}

// Place returns the pin of room, claiming it for a node with headroom when it has none; expect is what is
// known of its size. It costs one store round trip, and one or two more for a stale or corrupt pin. After a
// possible data loss it asks the owners too. Without a store it returns the pin of the owner that has the
// room open, or else the pin that the store showed in the last half hour.
//
// Errors: ErrNotSettled, ErrNoNodes, *NoHeadroomError, ErrStoreUnavailable (the claim may have
// reached the store all the same; the next Place finds it), ErrContended, or the context's.
func (o *Orchestrator) Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error) {
	return o.swapLoop(ctx, o.request(room, expect), current{})
}

// Rehome moves room away from the dead pin from, by compare-and-set to the next epoch, and returns the pin
// that stands afterwards, whoever wrote it. The caller vouches that the boot of from is dead. When the
// store has lost the pin, the room is claimed above from. Errors as of Place.
func (o *Orchestrator) Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid.boot = from.Boot
	o.cache.note(room, from)
	return o.swapLoop(ctx, r, current{pin: from})
}

// PlaceAgain moves room after its node refused to OPEN it under the pin refused. It is Rehome to another
// node, and other rooms pass over the refusing node for a moment too.
func (o *Orchestrator) PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	r := o.request(room, expect)
	r.avoid.node = refused.Node
	r.refused = refused.Fence
	o.cache.note(room, refused)
	o.ledger.refuse(room, refused.Boot)
	return o.swapLoop(ctx, r, current{pin: refused})
}

// Observe remembers a fence of room: no later pin of the room made here, nor a fresh claim of any room, is at or below
// it. A lower pin in the store is then moved, so f must come from a node or the store, never from a client.
func (o *Orchestrator) Observe(room ring.RoomID, f pin.Fence) {
	if !f.IsZero() {
		o.cache.note(room, pin.Pin{Fence: f})
	}
}

// Opened says that node opened room and counts it in its load reports from the given sequence number on.
// This node's own reservation ends there.
func (o *Orchestrator) Opened(room ring.RoomID, node ring.NodeID, chargedInReport uint64) {
	o.ledger.opened(room, node, chargedInReport)
}

func (o *Orchestrator) request(room ring.RoomID, expect headroom.Room) *request {
	return &request{room: room, expect: expect, left: o.cfg.StoreBudget}
}

// settledView returns the present view, or ErrNotSettled.
func (o *Orchestrator) settledView() (*cluster.View, error) {
	view := o.views.View()
	if view == nil || !view.Settled {
		return nil, ErrNotSettled
	}
	return view, nil
}
