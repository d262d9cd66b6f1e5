package sfu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

// An Attach starts again when its room closes or its peer leaves.
const attachTries = 3

// attachment is a checked Attach.
type attachment struct {
	pin     pin.Pin
	room    ring.RoomID
	request *control.Attach
	entry   *control.Peer
	// confirmed says that the Owner has confirmed the pin for this Attach.
	confirmed bool
	// waited says that the peer has waited for a new branch.
	waited bool
	// entered is the owner's answer, at a branch.
	entered *control.LinkEntered
	// continuing is the connection of the peer's former node that goes on here, or nil.
	continuing *continuing
}

// readAttach checks an Attach and changes nothing.
func (n *Node) readAttach(message *control.PeerMessage) (attachment, *refusal) {
	request := message.GetAttach()
	if request == nil {
		return attachment{}, refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the first message of a stream must be an Attach")
	}
	p, err := request.GetPin().Value()
	if err != nil {
		return attachment{}, refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the Attach has no usable pin: %v", err)
	}
	if fence, err := message.GetFence().Value(); err != nil || fence != p.Fence {
		return attachment{}, refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the Attach was not said under the fence of its pin")
	}
	room, peer := request.GetRoom(), request.GetPeer()
	if room == "" || len(room) > maxNameBytes {
		return attachment{}, refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the room's name has %d bytes, want 1 to %d", len(room), maxNameBytes)
	}
	if peer.GetId() == "" || !entryFits(peer) {
		return attachment{}, refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the peer has no id, or its entry is too large")
	}
	if n.panics.Refuses(strikeName(peer)) {
		return attachment{}, refuse(control.Refusal_REFUSAL_BROKE, "what this peer sent has broken the node's handling of it twice")
	}
	if (p.Node != n.cfg.Node || p.Boot != n.cfg.Boot) && n.branchOf(ring.RoomID(room)) == nil {
		return attachment{}, refuse(control.Refusal_REFUSAL_WRONG_BOOT,
			"this is node %s, boot %s; the pin names node %s, boot %s", n.cfg.Node, n.cfg.Boot, p.Node, p.Boot)
	}
	return attachment{pin: p, room: ring.RoomID(room), request: request, entry: rosterCopy(peer)}, nil
}

// cost is what the room is expected to send.
func (a attachment) cost() headroom.Egress {
	if e := a.request.GetExpectedEgress(); e != nil {
		return e.Value()
	}
	return headroom.Expect(int(a.request.GetExpectedSize())).Cost()
}

// first is what this node is expected to send for the room at first: if others can become branches, half of what it may send at most.
func (n *Node) first(a attachment) headroom.Egress {
	cost := a.cost()
	first := headroom.First(cost, n.ceiling())
	able := func(c spread.Candidate) bool { return c.Able && c.Node != n.cfg.Node && !c.Draining && !c.Suspect }
	if a.running() || first == cost || n.cfg.Candidates == nil || !slices.ContainsFunc(n.cfg.Candidates(a.room), able) {
		return cost
	}
	return first
}

// running reports whether people were in the room before, on another node.
func (a attachment) running() bool { return a.request.GetExpectedFloor() != nil }

// least is what the room is expected to send at the lowest layers.
func (a attachment) least() headroom.Egress {
	if e := a.request.GetExpectedFloor(); e != nil {
		return e.Value()
	}
	return headroom.Expect(a.people()).Floor().Min(a.cost())
}

// takes reports whether the node has headroom for the room. A running room is judged by the lowest layers of all rooms, because larger
// pictures are held back for it; a new one by what all rooms send. It needs mu.
func (n *Node) takes(a attachment, now time.Time) bool {
	if a.running() && n.floorNow(now).Plus(a.least()).Fits(n.ceiling()) {
		return true
	}
	return headroom.Takes(n.egressNow(now), n.first(a), n.ceiling())
}

// people is how many are expected in the room.
func (a attachment) people() int {
	if n := int(a.request.GetExpectedSize()); n > 0 {
		return min(n, headroom.MaxPeople)
	}
	return headroom.DefaultPeople
}

// attach gives the peer of an Attach to its stream: it finds or opens the room, and has the pin confirmed where that is needed. It
// begins again when the room closes, or the peer leaves, in between.
func (n *Node) attach(ctx context.Context, message *control.PeerMessage) (s *session, refused *refusal) {
	ctx, span := traces.Serve(ctx, "attach at media node")
	defer func() {
		span.Set("room", message.GetAttach().GetRoom()).Set("node", string(n.cfg.Node)).End(refused.reason())
	}()
	a, refused := n.readAttach(message)
	if refused != nil {
		return nil, refused
	}
	if a.pin.Node != n.cfg.Node || a.pin.Boot != n.cfg.Boot {
		return n.attachAtBranch(ctx, a)
	}
	for range attachTries {
		// The pin is confirmed again each time: a Leave that was confirmed for a closed room must not open the room again.
		a.confirmed = false
		r, refused := n.find(a)
		if refused != nil {
			return nil, refused
		}
		if r == nil || !r.attachesUnconfirmed(ctx, a) {
			if err := n.confirm(ctx, a); err != nil {
				return nil, unconfirmed(err)
			}
			a.confirmed = true
		}
		if r == nil {
			if r, refused = n.open(ctx, a); refused != nil {
				return nil, refused
			}
		}
		if a.continuing == nil {
			a.continuing = n.claim(ctx, a)
		}
		s, refused, err := r.attach(ctx, a)
		switch {
		case err == nil && refused != nil:
			return nil, refused
		case err == nil:
			s.goOn(ctx, a.continuing)
			return s, nil
		case errors.Is(err, errAppointing):
			a.waited = true
			r.branches.await(ctx, spread.AppointWait, r.members.allUp)
		case errors.Is(err, errRelinking):
			r.branches.await(ctx, relinkWait, func() bool { _, err := r.members.servedBy(a); return err == nil })
			a.waited = true
		case !errors.Is(err, errRoomClosed) && !errors.Is(err, errStranger):
			return nil, refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the attach was interrupted: %v", err)
		}
	}
	return nil, refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the room is closing: attach again")
}

// confirm asks the owner for the pin of an Attach.
func (n *Node) confirm(ctx context.Context, a attachment) error {
	ctx, span := traces.Start(ctx, "confirm pin")
	err := n.owner.Confirm(ctx, a.room, a.pin)
	span.End(err)
	return err
}

// find returns the open room, or neither a room nor a refusal if it may be opened.
func (n *Node) find(a attachment) (*room, *refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r, ok := n.rooms[a.room]; ok {
		if current := r.pin().Fence; a.pin.Fence.Less(current) {
			return nil, fenced(current)
		}
		return r, nil
	}
	if b := n.branches[a.room]; b != nil && b.pin().Fence.Less(a.pin.Fence) {
		// Whom it has is in the room, whatever the store can say.
		return nil, nil
	}
	if a.request.GetOnlyIfHere() {
		return nil, notHere()
	}
	return nil, n.mayOpen(a, time.Now())
}

// mayOpen refuses a room that was fenced or refused before, or for which the node has no place. A refusal for headroom or a drain is
// final for the fence. It needs mu.
func (n *Node) mayOpen(a attachment, now time.Time) *refusal {
	if stone, ok := n.stones.forbids(a.room, a.pin.Fence, now); ok {
		if stone.code == control.Refusal_REFUSAL_FENCED {
			return fenced(stone.fence)
		}
		return refuse(stone.code, "the opening of this room under fence %v was refused already", a.pin.Fence)
	}
	if n.drain != nil {
		return n.refuseOpening(a, control.Refusal_REFUSAL_DRAINING, now)
	}
	if len(n.rooms) >= n.cfg.Limits.Rooms {
		n.reached("", limitRooms, fmt.Sprintf("%d rooms", len(n.rooms)))
		return n.refuseOpening(a, control.Refusal_REFUSAL_NO_HEADROOM, now)
	}
	if !n.takes(a, now) {
		n.reached("", limitHeadroom, fmt.Sprintf("no headroom for a room of %d that costs %v", a.people(), a.cost()))
		return n.refuseOpening(a, control.Refusal_REFUSAL_NO_HEADROOM, now)
	}
	return nil
}

// The limits of a media node, as events name them.
const (
	limitPeople   = "people"
	limitRooms    = "rooms"
	limitHeadroom = "headroom"
)

// reached records that a limit of this node, or of one of its rooms, was reached.
func (n *Node) reached(room ring.RoomID, limit, cause string) {
	n.cfg.Events.Reached(events.Event{Node: n.cfg.Node, Room: room, Cause: cause, About: limit})
}

// refuseOpening remembers the refusal. It needs mu.
func (n *Node) refuseOpening(a attachment, code control.Refusal, now time.Time) *refusal {
	n.stones.lay(a.room, a.pin.Fence, code, now)
	n.log.Info("room not opened", "room", string(a.room), "fence", a.pin.Fence.String(), "reason", code.String())
	if code == control.Refusal_REFUSAL_DRAINING {
		return refuse(code, "node %s takes no more rooms", n.cfg.Node)
	}
	return refuse(code, "node %s has no headroom for a room of %d that costs %v", n.cfg.Node, a.people(), a.cost())
}

// open opens the room, or returns the one that another Attach opened meanwhile.
func (n *Node) open(ctx context.Context, a attachment) (*room, *refusal) {
	ctx, span := traces.Start(ctx, "open room")
	defer span.End(nil)
	n.mu.Lock()
	if r, ok := n.rooms[a.room]; ok {
		n.mu.Unlock()
		return r, nil
	}
	if r := n.promote(a.room, a.pin); r != nil {
		n.mu.Unlock()
		return r, nil
	}
	now := time.Now()
	if refused := n.mayOpen(a, now); refused != nil {
		n.mu.Unlock()
		return nil, refused
	}
	r := newRoom(n, a, n.rosters.Open(a.room, a.pin), now)
	n.rooms[a.room], n.serving[r] = r, struct{}{}
	n.mu.Unlock()
	select {
	case n.starting <- r:
		n.log.Info("room opened", "room", string(a.room), "fence", a.pin.Fence.String(), "expected_size", a.people(), "expected_egress", a.cost().String())
		n.cfg.Metrics.Opened()
		n.cfg.Events.Record(events.Event{Kind: events.RoomOpened, Room: a.room, Node: n.cfg.Node, About: a.pin.Fence.String()})
		failpoint.Hit("move.opened")
		return r, nil
	case <-n.stopped:
	case <-ctx.Done():
	}
	r.roll.book.Leave()
	n.forget(r)
	n.mu.Lock()
	delete(n.serving, r)
	n.mu.Unlock()
	close(r.done)
	return nil, refuse(control.Refusal_REFUSAL_UNCONFIRMED, "node %s is not serving", n.cfg.Node)
}

// forget drops a room that closes, unless the room was opened anew meanwhile.
func (n *Node) forget(r *room) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rooms[r.id] == r {
		delete(n.rooms, r.id)
	}
	if n.branches[r.id] == r {
		delete(n.branches, r.id)
	}
}

// branchOf returns the branch of a room that this node is, or nil.
func (n *Node) branchOf(id ring.RoomID) *room {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.branches[id]
}

// branch returns the room of which this node is a branch, and begins it if it is none.
func (n *Node) branch(ctx context.Context, id ring.RoomID, owner pin.Pin, run uint64) (*room, *refusal) {
	n.mu.Lock()
	now := time.Now()
	if own := n.rooms[id]; own != nil && owner.Fence.Less(own.pin().Fence) {
		n.mu.Unlock()
		return nil, fenced(own.pin().Fence)
	}
	if stone, ok := n.stones.forbids(id, owner.Fence, now); ok && owner.Fence.Less(stone.fence) && stone.code == control.Refusal_REFUSAL_FENCED {
		// The room has left this node under a higher fence, of which a former owner has not heard.
		n.mu.Unlock()
		return nil, fenced(stone.fence)
	}
	if r := n.branches[id]; r != nil {
		n.mu.Unlock()
		return r, nil
	}
	switch {
	case n.drain != nil:
		n.mu.Unlock()
		return nil, refuse(control.Refusal_REFUSAL_DRAINING, "node %s takes no more people", n.cfg.Node)
	case len(n.rooms)+len(n.branches) >= n.cfg.Limits.Rooms:
		n.mu.Unlock()
		return nil, refuse(control.Refusal_REFUSAL_NO_HEADROOM, "node %s has no place for one more room", n.cfg.Node)
	}
	a := attachment{pin: owner, room: id, request: &control.Attach{ExpectedSize: branchPeople, Unreserved: true}}
	r := newRoom(n, a, n.rosters.Aside(), now)
	r.roll.run, r.members.owner = run, newMember(&control.Place{Node: string(owner.Node), Boot: string(owner.Boot), Control: owner.Control}, "", now)
	n.branches[id], n.serving[r] = r, struct{}{}
	n.mu.Unlock()
	select {
	case n.starting <- r:
		r.log.Info("branch opened", "fence", owner.Fence.String(), "owner", string(owner.Node))
		return r, nil
	case <-n.stopped:
	case <-ctx.Done():
	}
	n.forget(r)
	n.mu.Lock()
	delete(n.serving, r)
	n.mu.Unlock()
	close(r.done)
	return nil, refuse(control.Refusal_REFUSAL_UNCONFIRMED, "node %s is not serving", n.cfg.Node)
}

// attachAtBranch attaches somebody whose room has its pin at another node.
func (n *Node) attachAtBranch(ctx context.Context, a attachment) (*session, *refusal) {
	r := n.branchOf(a.room)
	if r == nil {
		return nil, elsewhere(nil)
	}
	if refused := r.branch.judge(a.pin); refused != nil {
		return nil, refused
	}
	// Whom the branch has goes on without the owner.
	s, refused, err := r.attach(ctx, a)
	switch {
	case err == nil:
		return s, refused
	case !errors.Is(err, errStranger):
		return nil, elsewhere(nil)
	}
	e := &entrant{attachment: a, done: make(chan struct{})}
	var id uint64
	if err := r.do(ctx, func() { id = r.branch.ask(e) }); err != nil {
		return nil, elsewhere(nil)
	}
	late := time.NewTimer(enterWithin)
	defer late.Stop()
	select {
	case <-e.done:
		return e.session, e.refused
	case <-ctx.Done():
	case <-late.C:
	case <-r.done:
		return nil, elsewhere(nil)
	}
	r.post(func() {
		delete(r.branch.entering, id)
		if e.session != nil {
			// The answer came in between, and nobody takes the session.
			e.session.end()
		}
	})
	return nil, elsewhere(nil)
}
