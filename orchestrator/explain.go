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

// Explanation says where a room is, why it is there, and where the walk would place it now.
type Explanation struct {
	Room  ring.RoomID     `json:"room"`
	Hash  uint32          `json:"hash"`
	Pin   pin.Pin         `json:"pin"`
	State string          `json:"state"`
	Owner ring.NodeID     `json:"owner"`
	Need  headroom.Egress `json:"need"`
	// Bound is the share of its ceiling that a node may reach with the room.
	Bound float64 `json:"bound"`
	Walk  []Step  `json:"walk"`
	// Claimed is the time of the claim, as its epoch states it.
	Claimed time.Time `json:"claimed,omitzero"`
	// ClaimedWhy names the nodes that the claim passed over, with their load.
	ClaimedWhy string `json:"claimedWhy,omitempty"`
	// History has the moves since the claim, oldest first.
	History []pin.Change `json:"history"`
	// Unrecorded counts the moves that the store's history does not have.
	Unrecorded uint64 `json:"unrecorded"`
}

// Step is one node of the walk, in the order in which the walk visits the nodes.
type Step struct {
	Node     ring.NodeID     `json:"node"`
	Reported headroom.Egress `json:"reported"`
	// Reserved is the egress of placed rooms that Reported does not include yet.
	Reserved headroom.Egress `json:"reserved"`
	Ceiling  headroom.Egress `json:"ceiling"`
	// Share is load/ceiling with the room.
	Share float64 `json:"share"`
	// Chosen marks the node that a new room of this name would get.
	Chosen bool   `json:"chosen"`
	Why    string `json:"why"`
}

// Explain returns the room's placement. It only reads.
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

// Epochs begin as Unix milliseconds, so a larger gap between two epochs belongs to an earlier room of the same name.
const movesOfOneLife = 5000

// remember takes the moves that led to the current pin out of the history, back to the claim.
func (e *Explanation) remember(changes []pin.Change) {
	if e.Pin.IsZero() {
		return
	}
	next := e.Pin.Fence.Epoch
	for _, c := range changes {
		if c.Epoch > next {
			// The store lost this write later.
			continue
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
