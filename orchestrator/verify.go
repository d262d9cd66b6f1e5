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

// unsynced returns the live media nodes whose pins may be missing in the incarnation in. With 0 it returns all of
// them.
func unsynced(view *cluster.View, in pin.Incarnation) []cluster.Node {
	var list []cluster.Node
	for _, node := range view.Nodes {
		if node.Role == cluster.RoleSFU && !node.Load.Synced.Has(in) {
			list = append(list, node)
		}
	}
	return list
}

// verdict is what the media nodes say about the store's pin.
type verdict struct {
	// owner is the pin of a live node that has the room open against the store; zero if there is none.
	owner pin.Pin
	// unanswered are the boots that were asked and did not answer.
	unanswered []pin.BootID
}

// verify asks the nodes whose pins the store may lack whether one of them has the room open. It changes nothing. Owners that
// are synced in a view read after the write need not be asked. A usable pin is one at which people may join.
func (o *Orchestrator) verify(ctx context.Context, r *request, now current, usable bool) (verdict, error) {
	if now.absent() {
		return verdict{}, nil
	}
	known, in := o.cache.Of(r.room), r.in
	if now.raw == nil {
		switch lower := now.pin.Fence.Less(known.Fence); {
		case !usable && lower:
			// The store lost a write, so no owner is known to be synced.
			in = 0
		case !usable && r.avoid.any(), r.evidence == fromMemory:
			// Another pin replaces this one, and is verified after its write.
			return verdict{}, nil
		case usable && r.evidence == fromStore && o.cache.IsVerified(r.room, now.pin, in):
			return verdict{}, nil
		}
	}
	view, err := o.settledView()
	if err != nil {
		return verdict{}, err
	}
	ask := unsynced(view, in)
	if len(ask) == 0 {
		return verdict{}, nil
	}
	// The pin's own node may have lost the room to another one, so that a synced owner is asked, too.
	if node, ok := view.Nodes[now.pin.Node]; usable && ok && node.Boot == now.pin.Boot && node.Load.Synced.Has(in) {
		ask = append(ask, node)
	}
	said, err := o.askOwners(ctx, r, ask)
	if err != nil {
		return verdict{}, err
	}
	if now.raw == nil && agrees(said.owner, now.pin, known, usable) {
		said.owner = pin.Pin{}
	}
	if now.raw == nil && usable && !said.owner.IsZero() {
		o.log.Info("claim handed back", "room", r.room, "fence", now.pin.Fence, "node", now.pin.Node,
			"holder", said.owner.Node, "holder_fence", said.owner.Fence, "why", "the store forgot the holder's pin")
	}
	return said, nil
}

// agrees reports whether the owner's pin needs no move to it, although it differs from the stored pin.
func agrees(owner, stored, known pin.Pin, usable bool) bool {
	if !usable {
		// The owner serves the cached pin, which propose puts back.
		return owner.Boot == known.Boot && !known.Fence.Less(owner.Fence)
	}
	// The owner has an earlier pin of its own, and takes the stored one over; or the room was moved off this owner.
	return owner.Boot == stored.Boot && !stored.Fence.Less(owner.Fence) ||
		owner.Fence.Less(stored.Fence) && !stored.Fence.Ignores(owner.Fence)
}

// Once the cached owner has answered, the others have this part of ProbeTimeout left.
const graceShare = 2

// askOwners asks nodes under which pin they have the room open, and returns the highest. A silent node must not stop joins: it
// is passed over, and reclaims the room later. Those that were silent to this request already are not asked again.
func (o *Orchestrator) askOwners(ctx context.Context, r *request, nodes []cluster.Node) (verdict, error) {
	known := o.cache.Of(r.room)
	nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool {
		return n.Boot == r.avoid.boot && r.avoid.boot != "" || slices.Contains(r.unanswered, n.Boot)
	})
	// The cached owner is asked first, because its answer shortens the wait for the others.
	if first := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Boot == known.Boot }); first > 0 {
		nodes[0], nodes[first] = nodes[first], nodes[0]
	}
	asking, stop := context.WithTimeout(ctx, o.cfg.ProbeTimeout)
	defer stop()
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		said verdict   // guarded by mu
		held []pin.Pin // guarded by mu
	)
	slots := make(chan struct{}, maxAsking)
	for _, node := range nodes {
		slots <- struct{}{}
		all.Go(func() {
			p, err := pin.Pin{}, errBroke
			o.cfg.Panics.Catch(o.log, "a question to an owner broke", func() { p, err = o.prober.Holds(asking, node.Control, r.room) },
				"room", r.room, "node", node.ID)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrNobodyThere):
			case err != nil:
				said.unanswered = append(said.unanswered, node.Boot)
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
		return verdict{}, fmt.Errorf("place room %s: %w", r.room, err)
	}
	// An owner may have died since it answered.
	view := o.views.View()
	for _, p := range held {
		if why, _ := whyGone(view, p); why == "" && said.owner.Fence.Less(p.Fence) {
			said.owner = p
		}
	}
	return said, nil
}

// This is half of a pin's life.
const rememberedFor = 30 * time.Minute

// withoutStore places a room while the store is away: with the live owner that has it open, or where the store showed
// it lately. Clients may invent room names, so for an unknown room it does not ask the owners of a large cluster.
func (o *Orchestrator) withoutStore(ctx context.Context, r *request) (pin.Pin, bool) {
	known, view := o.cache.Of(r.room), o.views.View()
	if r.avoid.any() || view == nil || r.entry != nil {
		return pin.Pin{}, false
	}
	ask := unsynced(view, 0)
	if known.IsZero() && len(ask) > maxAsking {
		return pin.Pin{}, false
	}
	said, err := o.askOwners(ctx, r, ask)
	owner := said.owner
	switch {
	case err != nil:
		return pin.Pin{}, false
	case !owner.IsZero() && !owner.Fence.Less(known.Fence):
		o.cache.Note(r.room, owner)
		return owner, true
	case !owner.IsZero() && owner.Boot != known.Boot:
		// Another node has the room under a lower fence than the cached pin. Only the store can tell which of
		// them is right.
		return pin.Pin{}, false
	}
	why, sure := whyGone(view, known)
	return known, known.Node != "" && sure && why == "" && (!owner.IsZero() || o.cache.IsRecent(r.room, known, rememberedFor))
}
