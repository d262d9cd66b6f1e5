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

const maxAsking = 64

var errBroke = errors.New("asking broke")

// unsynced returns live media nodes whose pins incarnation in may lack; 0: all.
func unsynced(view *cluster.View, in pin.Incarnation) []cluster.Node {
	var list []cluster.Node
	for _, node := range view.Nodes {
		if node.Role == cluster.RoleSFU && !node.Load.Synced.Has(in) {
			list = append(list, node)
		}
	}
	return list
}

// verify returns the pin of a live owner that has the room open against the store. Owners synced in a view read after
// the write need not be asked.
func (o *Orchestrator) verify(ctx context.Context, r *request, now current, usable bool) (pin.Pin, error) {
	known := o.cache.Of(r.room)
	in := r.in
	switch lower := now.pin.Fence.Less(known.Fence); {
	case now.raw != nil:
		// Anybody may own the room. Ask before the write, as this process may die after it, and again after it.
		in, r.in, r.evidence = 0, 0, max(r.evidence, fromStore)
	case now.absent():
		return pin.Pin{}, nil
	case !usable && lower:
		in = 0
	case !usable && r.avoid != (avoidance{}), r.evidence == fromMemory:
		return pin.Pin{}, nil // verified after the write
	case usable && r.evidence == fromStore && o.cache.IsVerified(r.room, now.pin, in):
		return pin.Pin{}, nil
	}
	view, err := o.settledView()
	if err != nil {
		return pin.Pin{}, err
	}
	ask := unsynced(view, in)
	if len(ask) == 0 {
		return pin.Pin{}, nil
	}
	if node, ok := view.Nodes[now.pin.Node]; usable && ok && node.Boot == now.pin.Boot && node.Load.Synced.Has(in) {
		ask = append(ask, node)
	}
	owner, err := o.askOwners(ctx, r, ask)
	switch {
	case err != nil:
		return pin.Pin{}, err
	case now.raw != nil:
	case !usable && owner.Boot == known.Boot && !known.Fence.Less(owner.Fence):
		return pin.Pin{}, nil // propose puts it back
	case usable && owner.Boot == now.pin.Boot && !now.pin.Fence.Less(owner.Fence):
		return pin.Pin{}, nil // the owner takes it over
	case usable && owner.Fence.Less(now.pin.Fence) && !now.pin.Fence.Ignores(owner.Fence):
		return pin.Pin{}, nil // moved off this owner
	case usable && !owner.IsZero():
		o.log.Info("claim handed back", "room", r.room, "fence", now.pin.Fence, "node", now.pin.Node,
			"holder", owner.Node, "holder_fence", owner.Fence, "why", "the store forgot the holder's pin")
	}
	return owner, nil
}

// The others' part of ProbeTimeout once the cached owner answered.
const graceShare = 2

// askOwners returns the highest pin under which a node has the room open. A silent node must not
// stop joins; it reclaims later.
func (o *Orchestrator) askOwners(ctx context.Context, r *request, nodes []cluster.Node) (pin.Pin, error) {
	known := o.cache.Of(r.room)
	nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool {
		return n.Boot == r.avoid.boot && r.avoid.boot != "" || slices.Contains(r.unanswered, n.Boot)
	})
	if first := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Boot == known.Boot }); first > 0 {
		nodes[0], nodes[first] = nodes[first], nodes[0]
	}
	asking, stop := context.WithTimeout(ctx, o.cfg.ProbeTimeout)
	defer stop()
	var (
		all  sync.WaitGroup
		mu   sync.Mutex // also guards r.unanswered
		held []pin.Pin
	)
	turn := make(chan struct{}, maxAsking)
	for _, node := range nodes {
		turn <- struct{}{}
		all.Go(func() {
			p, err := pin.Pin{}, errBroke
			o.cfg.Panics.Survives(o.log, "a question to an owner broke", func() { p, err = o.prober.Holds(asking, node.Control, r.room) },
				"room", r.room, "node", node.ID)
			<-turn
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrNobodyThere):
			case err != nil:
				r.unanswered = append(r.unanswered, node.Boot)
				o.log.Debug("owner did not answer", "room", r.room, "node", node.ID, "error", err)
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
		return pin.Pin{}, fmt.Errorf("place room %s: %w", r.room, err)
	}
	var top pin.Pin
	view := o.views.View()
	for _, p := range held {
		if why, _ := whyGone(view, p); why == "" && top.Fence.Less(p.Fence) { // it may have died since
			top = p
		}
	}
	return top, nil
}

// Half of a pin's life.
const rememberedFor = 30 * time.Minute

// withoutStore asks no large cluster for unknown rooms, which clients may invent.
func (o *Orchestrator) withoutStore(ctx context.Context, r *request) (pin.Pin, bool) {
	known, view := o.cache.Of(r.room), o.views.View()
	if r.avoid != (avoidance{}) || view == nil || r.entry != nil {
		return pin.Pin{}, false
	}
	ask := unsynced(view, 0)
	if known.IsZero() && len(ask) > maxAsking {
		return pin.Pin{}, false
	}
	owner, err := o.askOwners(ctx, r, ask)
	switch {
	case err != nil:
		return pin.Pin{}, false
	case !owner.IsZero() && !owner.Fence.Less(known.Fence):
		o.cache.Note(r.room, owner)
		return owner, true
	case !owner.IsZero() && owner.Boot != known.Boot:
		return pin.Pin{}, false // only the store can tell
	}
	why, sure := whyGone(view, known)
	return known, known.Node != "" && sure && why == "" && (!owner.IsZero() || o.cache.IsRecent(r.room, known, rememberedFor))
}
