package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
)

// This file is what keeps a store that lost its memory from splitting a room: a claim on an absent
// key says only that the store has no pin, not that the room is open nowhere.

// maxAsking bounds the owners that one claim asks at the same time.
const maxAsking = 64

// doubters are the live owners that have not said that they asserted their pins in generation in
// of the store. While there is one, a pin that the store gives is not the last word.
func doubters(view *cluster.View, in pin.Generation) []cluster.Node {
	var list []cluster.Node
	for _, node := range view.Nodes {
		if node.Role == cluster.RoleSFU && !node.Load.Asserted.Has(in) {
			list = append(list, node)
		}
	}
	return list
}

// holderElsewhere returns the pin under which another process has the room open than the one that was
// claimed or found, or nothing: then what stands may be used. The view must be younger than
// the claim: an owner that had reported before the claim would have been found by it.
func (o *Orchestrator) holderElsewhere(ctx context.Context, e *errand, found pin.Pin) (pin.Pin, error) {
	if !e.written || !e.putBack && o.seen.isProven(e.room, found, e.in) {
		return pin.Pin{}, nil
	}
	view, err := o.settledView()
	if err != nil {
		return pin.Pin{}, err
	}
	ask := doubters(view, e.in)
	if len(ask) == 0 {
		return pin.Pin{}, nil
	}
	if node, ok := view.Nodes[found.Node]; ok && node.Boot == found.Boot && node.Load.Asserted.Has(e.in) {
		ask = append(ask, node) // Whether it has the room open decides, if somebody else has.
	}
	held, err := o.askHolders(ctx, e, ask)
	if err != nil {
		return pin.Pin{}, err
	}
	holder := highest(held)
	switch {
	case holder.Boot == found.Boot && !found.Fence.Less(holder.Fence):
		return pin.Pin{}, nil // It has the room open where the pin says, and takes the pin over.
	case holder.Fence.Less(found.Fence) && !ignores(found.Fence, holder.Fence):
		return pin.Pin{}, nil // Who moved the room knew of an owner; this one was left behind, and learns of it.
	case !holder.IsZero():
		o.log.Info("claim handed back", "room", e.room, "fence", found.Fence, "node", found.Node,
			"holder", holder.Node, "holder_fence", holder.Fence, "why", "the store forgot the holder's pin")
	}
	return holder, nil
}

// ignores reports whether whoever made a pin with the higher fence above cannot have known of the pin below: it was claimed on an
// absent key, or moved from a pin that was older than the one below. Every move has a higher epoch
// than what it was made from, so two moves of one epoch were made from the same, or from older ones.
func ignores(above, below pin.Fence) bool {
	return above.Fresh() || above.Epoch == below.Epoch
}

// whoHolds looks for the owner behind a damaged pin, which may have been anybody's. What is written over the damage must
// neither move the room nor be below what was there: it goes to the node that has the room open, or to a new one, with the fence of a
// fresh claim. It is asked before the write, so that a crash after it leaves a good pin, and again after it: the same
// damage may have been there twice.
func (o *Orchestrator) whoHolds(ctx context.Context, e *errand) (pin.Pin, error) {
	view, err := o.settledView()
	if err != nil {
		return pin.Pin{}, err
	}
	e.written, e.in = true, 0
	held, err := o.askHolders(ctx, e, doubters(view, 0))
	return highest(held), err
}

// whoOutranks looks for the owner when a lower pin stands than was seen, or a stale one in a store that may have lost what came
// after it: the room must not be moved away
// from a node that has it open. It returns nothing where nobody has, or only the owner of the pin that
// was seen, which is put back then.
func (o *Orchestrator) whoOutranks(ctx context.Context, e *errand, stands pin.Pin) (pin.Pin, error) {
	known := o.seen.of(e.room)
	lower := stands.Fence.Less(known.Fence)
	if stands.IsZero() || !lower && !e.plain { // Who moves a stale pin with grounds of its own asks after the write.
		return pin.Pin{}, nil
	}
	view, err := o.settledView()
	if err != nil {
		return pin.Pin{}, err
	}
	ask := doubters(view, 0)
	if !lower {
		if ask = doubters(view, e.in); !e.written || len(ask) == 0 {
			return pin.Pin{}, nil
		}
	}
	held, err := o.askHolders(ctx, e, ask)
	if holder := highest(held); holder.Boot != known.Boot || known.Fence.Less(holder.Fence) {
		return holder, err
	}
	return pin.Pin{}, err
}

// highest returns the pin with the highest fence, or none.
func highest(pins []pin.Pin) (top pin.Pin) {
	for _, p := range pins {
		if top.Fence.Less(p.Fence) {
			top = p
		}
	}
	return top
}

// graceShare: once the remembered owner says that it has the room open, the others have 1/graceShare of Config.ProbeTimeout left to
// name a higher pin. A node waits 300 ms at most before it answers (Keeper.Opening).
const graceShare = 2

// askHolders asks each node whether it has the room open, the remembered owner first, and returns the pins of those that do. A dead node
// holds nothing. A node that does not answer within Config.ProbeTimeout is noted in e.mute, and this call goes on without it: a frozen node
// must not stop all joins, and an owner that was not asked contests the claim when it refreshes.
func (o *Orchestrator) askHolders(ctx context.Context, e *errand, nodes []cluster.Node) ([]pin.Pin, error) {
	known := o.seen.of(e.room)
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return n.Boot == e.avoid.boot && e.avoid.boot != "" || slices.Contains(e.mute, n.Boot) // The caller knows that it is dead.
	})
	if first := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Boot == known.Boot }); first > 0 {
		nodes[0], nodes[first] = nodes[first], nodes[0]
	}
	asking, stop := context.WithTimeout(ctx, o.cfg.ProbeTimeout)
	defer stop()
	var (
		all  sync.WaitGroup
		mu   sync.Mutex // guards held and e.mute
		held []pin.Pin
	)
	turn := make(chan struct{}, maxAsking)
	for _, node := range nodes {
		turn <- struct{}{} // Who has one gives it back when asking ends.
		all.Go(func() {
			p, err := o.prober.Holds(asking, node.Control, e.room)
			<-turn
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrNobodyThere):
			case err != nil:
				e.mute = append(e.mute, node.Boot)
				o.log.Debug("owner did not answer", "room", e.room, "node", node.ID, "error", err)
			case !p.IsZero():
				held = append(held, p)
				if p.Boot == known.Boot && !p.Fence.Less(known.Fence) {
					time.AfterFunc(o.cfg.ProbeTimeout/graceShare, stop)
				}
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("place room %s: %w", e.room, err)
	}
	view := o.views.View()
	return slices.DeleteFunc(held, func(p pin.Pin) bool { // It has died since it answered.
		why, _ := whyGone(view, p)
		return why != ""
	}), nil
}

// rememberedFor is how long after the store has shown the pin of a room that is open nowhere people are let in by it without a store: half of
// a pin's life, so that it has not expired, and been claimed for another node, meanwhile.
const rememberedFor = 30 * time.Minute

// remembered says where the room may be joined while the store cannot be asked. Every live owner is asked who has the room open: it
// may have moved, or have been claimed anew, without this process having heard of it. When nobody has it open, it is where the store has shown it
// lately. The owner judges for itself (Keeper.Confirm) whether it still is the owner. For a room that this process has never heard of, which may
// be anybody's invention, owners are asked only where there are at most maxAsking.
func (o *Orchestrator) remembered(ctx context.Context, e *errand) (pin.Pin, bool) {
	known, view := o.seen.of(e.room), o.views.View()
	if !e.plain || view == nil {
		return pin.Pin{}, false
	}
	owners := doubters(view, 0)
	if known.IsZero() && len(owners) > maxAsking {
		return pin.Pin{}, false
	}
	held, err := o.askHolders(ctx, e, owners)
	holder := highest(held)
	switch {
	case err != nil:
		return pin.Pin{}, false
	case !holder.IsZero() && !holder.Fence.Less(known.Fence):
		o.seen.note(e.room, holder)
		return holder, true
	case !holder.IsZero() && holder.Boot != known.Boot:
		return pin.Pin{}, false // Which of the two it is only the store can say.
	}
	why, sure := whyGone(view, known)
	return known, known.Node != "" && sure && why == "" && (!holder.IsZero() || o.seen.isRecent(e.room, known, rememberedFor))
}
