// Package orchestrator decides where every room lives. It promises that all callers of
// all processes end on the same pin for a room, that epochs only grow, that a
// placement costs one store round trip whether the room is new or pinned, and that a
// pin whose node is gone is moved by whoever comes across it.
//
// Edges use an Orchestrator (place, re-home, explain); an SFU node uses a Keeper, which
// keeps the pins of the rooms it holds alive and learns of higher ones.
//
// It does not know Redis, gossip or gRPC: it is given a store (Claims, Keeps),
// a picture of the cluster (Views) and a way to ask an address who lives there (Prober).
// DESIGN.md beside this file has the invariants, the states of a pin and the races.
package orchestrator

import (
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Claims is the store of pins as an edge sees it. Every method is one round trip and
// safe to repeat. An error is either a *pin.CorruptError or means that the store could not say.
type Claims interface {
	// Claim writes p unless the room has a pin, and returns the one that stands.
	Claim(ctx context.Context, room ring.RoomID, p pin.Pin) (winner pin.Pin, err error)
	// Swap replaces old by next and returns what stands afterwards. It writes nothing when
	// something else stands, and nothing when the key is absent (the pin returned is then
	// zero): an absent pin is claimed, never swapped. A Swap that finds next has succeeded.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, err error)
	// Repair is Swap for a value that is no pin: it replaces exactly those bytes.
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (current pin.Pin, err error)
	// Get returns the pin that stands, and false when there is none.
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
}

// Views gives the present picture of the cluster. It must be cheap; the view is immutable.
type Views interface {
	View() *cluster.View
}

// Prober asks a control address which boot lives there.
type Prober interface {
	// BootAt returns the boot that answers at control, or an error that wraps
	// ErrNobodyThere when the connection was refused. Any other error means unknown.
	BootAt(ctx context.Context, control string) (pin.BootID, error)
}

// Orchestrator places and moves rooms for one edge. Its methods may be called
// from any goroutine; it owns none.
type Orchestrator struct {
	store  Claims
	views  Views
	prober Prober
	cfg    Config
	log    *slog.Logger
}

// New returns an orchestrator. The configuration must be valid (Config.Validate).
func New(store Claims, views Views, prober Prober, cfg Config, log *slog.Logger) *Orchestrator {
	return &Orchestrator{store: store, views: views, prober: prober, cfg: cfg, log: log}
}

var errUnbuilt = errors.New("not built yet")

// Place returns the pin of room, claiming it for a node with headroom when it has none. One
// store round trip; a stale or corrupt pin costs one or two more. expectedSize is
// how many people the room is expected to hold, 0 for the default.
//
// Errors: ErrNotSettled, ErrNoNodes, *NoHeadroomError, ErrStoreUnavailable, ErrContended,
// or the context's.
func (o *Orchestrator) Place(_ context.Context, _ ring.RoomID, _ int) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// Rehome moves room away from the dead pin from, by compare-and-set to the next epoch, and
// returns the pin that stands afterwards, whoever wrote it. The caller vouches that the
// boot of from is dead. Errors as of Place.
func (o *Orchestrator) Rehome(_ context.Context, _ ring.RoomID, _ pin.Pin, _ int) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// PlaceAgain moves room after its node refused to OPEN it under the pin refused. It is
// Rehome to another node, and that node is passed over for a moment.
func (o *Orchestrator) PlaceAgain(_ context.Context, _ ring.RoomID, _ pin.Pin, _ int) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// Observe remembers a fence seen anywhere (a client's resume, a refusal): no pin made here
// will be at or below it.
func (o *Orchestrator) Observe(_ ring.RoomID, _ pin.Fence) {}

// Opened says that node opened room and counts it in its load reports from
// the given sequence number on, so that the edge's own reservation ends there.
func (o *Orchestrator) Opened(_ ring.RoomID, _ ring.NodeID, _ uint64) {}

// Explain says why room lives where it lives. It changes nothing.
func (o *Orchestrator) Explain(_ context.Context, _ ring.RoomID) (Explanation, error) {
	return Explanation{}, errUnbuilt
}

// Explanation is the whole reasoning about one room. It encodes to JSON as it is.
type Explanation struct {
	Room  ring.RoomID `json:"room"`
	Pin   pin.Pin     `json:"pin"` // zero when the room has none
	State string      `json:"state"`
	Owner ring.NodeID `json:"owner"` // what the ring alone says
	Need  Egress      `json:"need"`  // what a room of the default size costs
	Walk  []Step      `json:"walk"`  // the ring's successors, the owner first
}

// Step is one node of the walk.
type Step struct {
	Node     ring.NodeID `json:"node"`
	Load     Egress      `json:"load"` // reported
	Reserved Egress      `json:"reserved"`
	Ceiling  Egress      `json:"ceiling"`
	Chosen   bool        `json:"chosen"` // a new room would go here
	Why      string      `json:"why"`
}
