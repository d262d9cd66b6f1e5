package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Explanation is a room's placement, explained.
type Explanation struct {
	Room  ring.RoomID     `json:"room"`
	Hash  uint32          `json:"hash"`
	Pin   pin.Pin         `json:"pin"`
	State string          `json:"state"`
	Owner ring.NodeID     `json:"owner"`
	Need  headroom.Egress `json:"need"`
	Bound float64         `json:"bound"` // load/ceiling with the room
	Walk  []Step          `json:"walk"`
	// Claimed is the time of the claim's epoch.
	Claimed time.Time `json:"claimed,omitzero"`
	// ClaimedWhy names the nodes passed over, with their load.
	ClaimedWhy string `json:"claimedWhy,omitempty"`
	// History has the moves, oldest first.
	History []pin.Change `json:"history"`
	// Unrecorded counts moves that the store does not have.
	Unrecorded uint64 `json:"unrecorded"`
}

// Step is a node of the walk.
type Step struct {
	Node     ring.NodeID     `json:"node"`
	Reported headroom.Egress `json:"reported"`
	Reserved headroom.Egress `json:"reserved"` // not in Reported yet
	Ceiling  headroom.Egress `json:"ceiling"`
	Share    float64         `json:"share"`  // load/ceiling with the room
	Chosen   bool            `json:"chosen"` // for a new room
	Why      string          `json:"why"`
}

// Explain only reads.
func (o *Orchestrator) Explain(ctx context.Context, room ring.RoomID) (Explanation, error) {
	view, err := o.settledView()
	if err != nil {
		return Explanation{}, err
	}
	r := o.request(room, headroom.Room{})
	out := Explanation{Room: room, Hash: ring.Hash(room), Need: r.expect.Cost(), History: []pin.Change{}}
	out.Owner, _ = view.Ring.Owner(room)
	found, err := o.read(ctx, r)
	if err != nil {
		return Explanation{}, err
	}
	out.Pin, out.State = found.pin, o.describe(ctx, r, found)
	o.ledger.explain(view, &out)
	changes, err := o.store.History(ctx, room)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain room %s: %w: %w", room, ErrStoreUnavailable, err)
	}
	out.remember(changes)
	return out, nil
}

// Epochs begin as milliseconds: an earlier room of the name is further away.
const movesOfOneLife = 5000

func (e *Explanation) remember(changes []pin.Change) {
	if e.Pin.IsZero() {
		return
	}
	next := e.Pin.Fence.Epoch
	for _, c := range changes {
		if c.Epoch > next {
			continue // a write that was lost
		}
		if next-c.Epoch > movesOfOneLife {
			break
		}
		e.Unrecorded += next - c.Epoch
		if c.IsClaim() {
			e.ClaimedWhy, next = c.Why, c.Epoch
			break
		}
		e.History = append(e.History, c)
		next = c.Epoch - 1
	}
	slices.Reverse(e.History)
	e.Claimed = time.UnixMilli(int64(next)).UTC() //nolint:gosec // Parse refuses larger epochs
}

func (o *Orchestrator) describe(ctx context.Context, r *request, was current) string {
	switch {
	case was.raw != nil:
		return "corrupt: " + was.raw.Error()
	case was.absent():
		return "the room has no pin"
	}
	if why := o.whyStale(ctx, r, was.pin); why != "" {
		return "stale: " + why
	}
	if known := o.cache.Of(r.room); was.pin.Fence.Less(known.Fence) {
		return fmt.Sprintf("fenced: fence %s was seen", known.Fence)
	}
	if why, known := whyGone(o.views.View(), was.pin); !known || why != "" {
		return "kept: gossip does not know its process, and nothing says that it is dead"
	}
	return "its process is alive"
}
