package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
)

const maxSteps = 4

// swapLoop writes a pin over was, and then over whatever the store has instead, until the store has a usable pin.
// DESIGN.md has the loop in short and its races.
func (o *Orchestrator) swapLoop(ctx context.Context, r *request, was current) (placed pin.Pin, err error) {
	ctx, span := traces.Start(ctx, "place")
	defer func() {
		span.Set("room", string(r.room)).Set("node", string(placed.Node)).Set("why", r.why).End(err)
		if full, ok := errors.AsType[*NoHeadroomError](err); ok {
			// Without a node or a room in it, the event is the whole cluster's, and kept once for all signaling nodes.
			o.cfg.Events.Reached(events.Event{Cause: full.Error(), About: "headroom"})
		}
	}()
	for step := range maxSteps {
		view, err := o.settledView()
		if err != nil {
			return pin.Pin{}, err
		}
		next, err := o.propose(ctx, view, r, was)
		if err != nil && (step > 0 || ctx.Err() != nil) {
			return pin.Pin{}, err
		}
		var now current
		if err == nil {
			now, err = o.replace(ctx, r, was, next)
		}
		if next.IsZero() || was.absent() && errors.Is(err, ErrStoreUnavailable) {
			// The room cannot be placed anew, but people may still join at its present pin.
			now, err = o.readInstead(ctx, r, err)
		}
		if errors.Is(err, ErrStoreUnavailable) {
			if known, ok := o.withoutStore(ctx, r); ok {
				o.log.Debug("room placed without the store", "room", r.room, "fence", known.Fence, "error", err)
				return known, nil
			}
		}
		if err != nil {
			return pin.Pin{}, err
		}
		usable := !next.IsZero() && now.pin == next || o.usable(ctx, r, now)
		said, err := o.verify(ctx, r, now, usable)
		now.owner, r.unanswered = said.owner, append(r.unanswered, said.unanswered...)
		switch {
		case err != nil:
			return pin.Pin{}, err
		case usable && now.owner.IsZero():
			if len(r.unanswered) > 0 {
				// Some owners did not answer, so the next placement of this room asks them again.
				r.in = 0
			}
			o.cache.Verified(r.room, now.pin, r.in)
			if r.avoid.boot != "" && now.pin != next && !r.expect.Unreserved {
				// Another signaling node has moved the room. Its egress is reserved here as well.
				o.ledger.keep(r.room, now.pin, r.expect)
			}
			return now.pin, nil
		case usable:
			o.ledger.forget(r.room, next.Fence)
		}
		was = now
	}
	return pin.Pin{}, fmt.Errorf("place room %s: %w", r.room, ErrContended)
}

// readInstead reads the pin after a placement failed with the error why. It returns why if the room has no pin.
func (o *Orchestrator) readInstead(ctx context.Context, r *request, why error) (current, error) {
	found, err := o.read(ctx, r)
	if err == nil && found.absent() {
		err = why
	}
	if err == nil && o.cache.Of(r.room) != found.pin {
		// Another process wrote this pin and may not have verified it.
		r.evidence = max(r.evidence, fromStore)
	}
	return found, err
}

// replace writes next over was, and returns the pin that the store has afterwards.
func (o *Orchestrator) replace(ctx context.Context, r *request, was current, next pin.Pin) (current, error) {
	if was.absent() {
		r.claimed = next.Fence
	} else {
		failpoint.Hit("rehome.before-swap")
	}
	if r.claiming != (headroom.Egress{}) {
		// The claim stops counting only after keep has reserved the egress, so that a won claim is counted without a
		// gap.
		defer o.ledger.claimEnded(next.Boot, r.claiming)
		r.claiming = headroom.Egress{}
	}
	now, err := o.writeTraced(ctx, r, was, next)
	if err == nil && now.pin != next {
		o.ledger.forget(r.room, next.Fence)
	}
	if err != nil || now.pin != next {
		// After an error the write may have happened, so the reservation stays until it lapses.
		return now, err
	}
	if was.absent() {
		failpoint.Hit("place.after-claim")
	} else {
		failpoint.Hit("rehome.after-swap")
		o.log.Info("pin moved", "room", r.room, "from", was.pin.Node, "from_fence", was.pin.Fence, "to", next.Node, "to_fence", next.Fence)
		o.cfg.Metrics.Rehomed(causeOf(r.why))
		o.cfg.Events.Record(events.Event{Kind: events.RoomRehomed, Room: r.room, From: was.pin.Node, To: next.Node, Cause: r.why, About: next.Fence.String()})
	}
	if was.owner.IsZero() && !r.expect.Unreserved {
		o.ledger.keep(r.room, next, r.expect)
	}
	return now, nil
}

// propose returns the pin that should replace was. If another node has the room open, that is a higher pin of that
// node. Otherwise, if the store has lost a higher pin whose process lives, it is that pin. Otherwise the walk chooses
// a node.
func (o *Orchestrator) propose(ctx context.Context, view *cluster.View, r *request, was current) (pin.Pin, error) {
	epoch, nonce := o.cache.NextEpoch(r.room, was.pin), pin.NewNonce
	if was.pin.IsZero() {
		epoch, nonce = o.cache.FreshEpoch(r.room), pin.NewFreshNonce
	}
	// Moving the pin to the node that has the room open moves nobody.
	if back := was.owner; !back.IsZero() {
		r.why = whyOwner
		back.Fence = pin.Fence{Epoch: max(epoch, back.Fence.Epoch+1), Nonce: pin.NewNonce()}
		return back, nil
	}
	known := o.cache.Of(r.room)
	if !was.pin.IsZero() && was.pin.Fence.Less(known.Fence) && known.Node != "" && o.whyStale(ctx, r, known) == "" {
		r.evidence = restored
		r.why = whyLost
		return known, nil
	}
	need, fence := needOf(view, r.expect), pin.Fence{Epoch: epoch, Nonce: nonce()}
	_, span := traces.Start(ctx, "walk ring")
	node, made := o.pick(view, r, was, need, fence)
	span.Set("node", string(made.node)).Count("nodes_asked", made.asked).Count("nodes_refused", made.refused).End(nil)
	switch {
	case made.node != "":
		return pin.Pin{Fence: fence, Node: node.ID, Boot: node.Boot, Control: node.Control}, nil
	case made.asked == 0 && made.refused == 0:
		return pin.Pin{}, fmt.Errorf("place room %s: %w", r.room, ErrNoNodes)
	default:
		return pin.Pin{}, fmt.Errorf("place room %s: %w", r.room, &NoHeadroomError{Need: need, Best: made.best})
	}
}

// pick chooses a node for the request. It reserves the room's egress there for a pin that is replaced, and only
// counts it for a claim.
func (o *Orchestrator) pick(view *cluster.View, r *request, was current, need headroom.Egress, fence pin.Fence) (cluster.Node, choice) {
	if r.expect.Unreserved {
		return o.ledger.choose(view, r.room, need, r.avoid)
	}
	if was.absent() {
		node, made := o.ledger.claim(view, r.room, need, r.avoid)
		if made.node != "" {
			r.claiming = need
		}
		r.why = ""
		// A room that the cache knows most likely has a pin, so a reason for the claim would not be used.
		if o.cache.Of(r.room).IsZero() {
			r.why = because("", made.over)
		}
		return node, made
	}
	node, made := o.ledger.reserve(view, r.room, r.expect, r.avoid, fence, r.lowest)
	if made.lowest {
		r.why += "; nobody has headroom, so only for the lowest layers"
	}
	r.why = because(r.why, made.over)
	return node, made
}

// usable reports whether people may join at the pin was. If they may not, it sets r.why.
func (o *Orchestrator) usable(ctx context.Context, r *request, was current) bool {
	if was.raw != nil {
		o.log.Warn("corrupt pin", "room", r.room, "error", was.raw)
	}
	if was.pin.IsZero() {
		return false
	}
	why := o.whyStale(ctx, r, was.pin)
	if why == "" && was.pin.Fence.Less(o.cache.Of(r.room).Fence) {
		why = "a higher pin was seen"
	}
	if why != "" {
		r.why = why
		o.log.Info("stale pin", "room", r.room, "node", was.pin.Node, "boot", was.pin.Boot, "fence", was.pin.Fence, "why", why)
	}
	return why == ""
}

// whyStale returns why a pin must not be used, or the empty reason. Unknown is not dead: a boot that gossip does not
// know is asked itself.
func (o *Orchestrator) whyStale(ctx context.Context, r *request, p pin.Pin) string {
	switch {
	case r.avoid.boot != "" && p.Boot == r.avoid.boot:
		return "the caller knows that its process is dead"
	case !r.refused.IsZero() && p.Fence == r.refused:
		return whyRefused
	}
	why, known := whyGone(o.views.View(), p)
	if known {
		return why
	}
	// Only a refused dial or another boot's answer proves that the boot is gone.
	boot, err := o.probe(ctx, p)
	switch {
	case errors.Is(err, ErrNobodyThere):
		return "nobody listens at its address"
	case err != nil && o.views.View().Absent(p.Node, p.Boot):
		return "gossip does not know its process, which is silent"
	case err != nil:
		o.log.Warn("boot unknown to gossip, pin kept", "room", r.room, "node", p.Node, "boot", p.Boot, "error", err)
		return ""
	case boot != p.Boot:
		return "another process lives at its address"
	default:
		return ""
	}
}

const (
	whyRefused = "its node refused to open the room"
	whyOwner   = "its owner has it open"
	whyLost    = "a write was lost"
)

func (o *Orchestrator) whyRehomed(from pin.Pin) string {
	view := o.views.View()
	if view == nil {
		return ""
	}
	if why, _ := whyGone(view, from); why != "" {
		return why
	}
	if view.Nodes[from.Node].Draining {
		return pin.WhyDrain
	}
	return "its process was taken for dead"
}

// whyGone returns why the pin's boot is gone, or the empty reason if it lives. known is false if the view cannot
// tell.
func whyGone(view *cluster.View, p pin.Pin) (why string, known bool) {
	switch view.Liveness(p.Node, p.Boot) {
	case cluster.Live:
		return "", true
	case cluster.Replaced:
		return "a newer process has its name", true
	case cluster.Departed:
		return "its process is gone: " + view.HowGone(p.Boot), true
	default:
		return "", false
	}
}

// probe asks which boot answers at the pin's address. Callers that ask at one time share a dial, which therefore
// outlives each of them.
func (o *Orchestrator) probe(ctx context.Context, p pin.Pin) (pin.BootID, error) {
	answer := o.probes.DoChan(p.Control, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.cfg.ProbeTimeout)
		defer cancel()
		boot, err := pin.BootID(""), errBroke
		o.cfg.Panics.Catch(o.log, "a question about a boot broke", func() { boot, err = o.prober.BootAt(ctx, p.Control) }, "node", p.Node)
		return boot, err
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answer:
		boot, _ := got.Val.(pin.BootID)
		return boot, got.Err
	}
}
