package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
)

// maxSteps bounds the writes of one call. Each lost one means that somebody else moved the
// pin to a node that is gone as well; after four of those the cluster is in no state to
// place anything.
const maxSteps = 4

// settle is all of placement: from what is believed to stand, write what should stand until
// a pin stands that may be used. Place starts from nothing (so its first write is the claim, and
// for a pinned room the answer to it is the pin), the others from the pin they want moved.
func (o *Orchestrator) settle(ctx context.Context, e *errand, was standing) (pin.Pin, error) {
	told := false // whether was is the store's word
	for range maxSteps {
		view, err := o.settledView()
		if err != nil {
			return pin.Pin{}, err
		}
		next, err := o.propose(ctx, view, e, was)
		if err != nil && (told || ctx.Err() != nil) {
			return pin.Pin{}, err
		}
		now := standing{}
		if err == nil {
			now, err = o.replace(ctx, e, was, next)
			if was.absent() && errors.Is(err, ErrStoreUnavailable) {
				// A store that refuses writes may still say where a pinned room is.
				now, err = o.readInstead(ctx, e, err)
			}
		} else {
			// There is no node for the room as far as we see, but it may have a pin
			// all the same: people may join it there, or somebody else has moved it.
			now, err = o.readInstead(ctx, e, err)
		}
		if err != nil {
			if !errors.Is(err, ErrStoreUnavailable) {
				return pin.Pin{}, err
			}
			if known, ok := o.remembered(ctx, e); ok {
				o.log.Debug("room placed without the store", "room", e.room, "fence", known.Fence, "error", err)
				return known, nil
			}
			return pin.Pin{}, err
		}
		if !next.IsZero() && now.pin == next || o.usable(ctx, e, now) {
			if e.holder, err = o.holderElsewhere(ctx, e, now.pin); err != nil {
				return pin.Pin{}, err
			}
			if e.holder.IsZero() {
				in := e.in
				if len(e.mute) > 0 {
					in = 0 // The next call asks again.
				}
				o.seen.prove(e.room, now.pin, in)
				return now.pin, nil
			}
			o.ledger.forget(e.room, next.Fence)
		} else if e.holder, err = o.holderBehind(ctx, e, now); err != nil {
			return pin.Pin{}, err
		}
		was, told = now, true
	}
	return pin.Pin{}, fmt.Errorf("place room %s: %w", e.room, ErrContended)
}

// holderBehind returns who has the room open behind what stands and must not be used, as far as that is to be asked.
func (o *Orchestrator) holderBehind(ctx context.Context, e *errand, now standing) (pin.Pin, error) {
	if now.raw != nil {
		return o.whoHolds(ctx, e)
	}
	return o.whoOutranks(ctx, e, now.pin)
}

// readInstead returns what stands, or why nothing could be written when nothing stands.
func (o *Orchestrator) readInstead(ctx context.Context, e *errand, why error) (standing, error) {
	found, err := o.read(ctx, e)
	if err == nil && found.absent() {
		err = why
	}
	if err == nil && o.seen.of(e.room) != found.pin {
		e.written = true // Read in an unknown generation, and new to this process: whoever claimed it may not have asked.
	}
	return found, err
}

// replace writes next, and reserves its egress if it stands then.
func (o *Orchestrator) replace(ctx context.Context, e *errand, was standing, next pin.Pin) (standing, error) {
	if !was.absent() {
		failpoint.Hit("rehome.before-swap")
	}
	now, err := o.write(ctx, e, was, next)
	if err != nil || now.pin != next {
		return now, err
	}
	if was.absent() {
		failpoint.Hit("place.after-claim")
	} else {
		failpoint.Hit("rehome.after-swap")
		o.log.Info("pin moved", "room", e.room, "from", was.pin.Node, "from_fence", was.pin.Fence, "to", next.Node, "to_fence", next.Fence)
	}
	if e.holder.IsZero() && !e.expect.Unreserved { // A holder's reports include the room.
		o.ledger.keep(e.room, next, e.expect.Cost())
	}
	return now, nil
}

// propose makes the pin that should stand instead of was.
func (o *Orchestrator) propose(ctx context.Context, view *cluster.View, e *errand, was standing) (pin.Pin, error) {
	if !e.holder.IsZero() {
		back := e.holder
		epoch := o.seen.nextEpoch(e.room, was.pin)
		if was.raw != nil {
			epoch = o.seen.freshEpoch(e.room)
		}
		back.Fence = pin.Fence{Epoch: max(epoch, back.Fence.Epoch+1), Nonce: pin.NewNonce()}
		return back, nil
	}
	known := o.seen.of(e.room)
	if !was.absent() && was.raw == nil && was.pin.Fence.Less(known.Fence) && known.Node != "" && o.whyStale(ctx, e, known) == "" {
		e.putBack = true // The store lost a write: the higher pin, whose owner lives, is put back.
		return known, nil
	}
	fence := pin.Fence{Nonce: pin.NewNonce()}
	if was.absent() || was.raw != nil {
		fence.Epoch = o.seen.freshEpoch(e.room)
		fence.Nonce = pin.NewFreshNonce()
	} else {
		fence.Epoch = o.seen.nextEpoch(e.room, was.pin)
	}
	need := e.expect.Cost()
	node, made := o.ledger.choose(view, e.room, need, e.avoid, o.cfg)
	switch {
	case made.node != "":
		return pin.Pin{Fence: fence, Node: node.ID, Boot: node.Boot, Control: node.Control}, nil
	case made.asked == 0 && made.refused == 0:
		return pin.Pin{}, fmt.Errorf("place room %s: %w", e.room, ErrNoNodes)
	default:
		return pin.Pin{}, fmt.Errorf("place room %s: %w", e.room, &NoHeadroomError{Need: need, Best: made.best})
	}
}

// usable reports whether what stands may be handed out, and says in the log why not.
func (o *Orchestrator) usable(ctx context.Context, e *errand, was standing) bool {
	if was.absent() {
		return false
	}
	if was.raw != nil {
		o.log.Warn("corrupt pin", "room", e.room, "error", was.raw)
		return false
	}
	why := o.whyStale(ctx, e, was.pin)
	if why == "" {
		if known := o.seen.of(e.room); was.pin.Fence.Less(known.Fence) {
			why = "a higher pin was seen"
		}
	}
	if why != "" {
		o.log.Info("stale pin", "room", e.room, "node", was.pin.Node, "boot", was.pin.Boot, "fence", was.pin.Fence, "why", why)
		return false
	}
	return true
}

// whyStale says why p must not be used, or nothing. Unknown is not dead: only what was
// seen, or found out at the address itself, counts against a pin.
func (o *Orchestrator) whyStale(ctx context.Context, e *errand, p pin.Pin) string {
	switch {
	case e.avoid.boot != "" && p.Boot == e.avoid.boot:
		return "the caller knows that its process is dead"
	case !e.refused.IsZero() && p.Fence == e.refused:
		return "its node refused to open the room"
	}
	why, known := whyGone(o.views.View(), p)
	if known {
		return why
	}
	boot, err := o.probe(ctx, p)
	switch {
	case errors.Is(err, ErrNobodyThere):
		return "nobody listens at its address"
	case err != nil && o.views.View().Absent(p.Node, p.Boot):
		return "gossip does not know its process, which is silent"
	case err != nil:
		o.log.Warn("boot unknown to gossip, pin kept", "room", e.room, "node", p.Node, "boot", p.Boot, "error", err)
		return ""
	case boot != p.Boot:
		return "another process lives at its address"
	default:
		return ""
	}
}

// whyGone says what view knows of the boot of p: why it is gone, or nothing when it
// lives, or known = false.
func whyGone(view *cluster.View, p pin.Pin) (why string, known bool) {
	if view == nil {
		return "", false
	}
	if how, gone := view.Gone[p.Boot]; gone {
		return "its process is gone: " + string(how), true
	}
	node, ok := view.Nodes[p.Node]
	switch {
	case !ok || node.Role != cluster.RoleSFU:
		return "", false
	case node.Boot == p.Boot:
		return "", true
	case node.Boot.Newer(p.Boot):
		return "a newer process has its name", true
	default:
		return "", false // Our view is the older one.
	}
}

// probe asks the pin's control address who lives there. Concurrent questions about one pin's
// address are asked once, and the answer does not depend on who asked first giving up.
func (o *Orchestrator) probe(ctx context.Context, p pin.Pin) (pin.BootID, error) {
	answer := o.probes.DoChan(p.Control, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.cfg.ProbeTimeout)
		defer cancel()
		return o.prober.BootAt(ctx, p.Control)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answer:
		boot, _ := got.Val.(pin.BootID)
		return boot, got.Err
	}
}
