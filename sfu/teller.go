package sfu

import (
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// teller tells what the room has to say: to the signaling nodes of the people here, and by the members to those of the others. It never
// waits. The room's loop owns it.
type teller struct {
	current *heldPin
	members *members
	peers   peerMap
	loop    taskLoop
	grace   time.Duration
	log     *slog.Logger
	// expire is posted when the grace time of a peer is over.
	expire func()
}

// send tells a peer's signaling node of an event.
func (t *teller) send(p *peer, event *control.PeerEvent) {
	if p.place != nil && t.members.owner == nil {
		t.members.tell(p.place, &control.LinkMessage{Message: &control.LinkMessage_Personal{Personal: &control.LinkPersonal{Peer: string(p.id), Event: event}}})
		return
	}
	t.queue(p, t.current.stamp(event))
}

// rests tells a peer's signaling node which of its layers nobody shows, if the peer stops such layers.
func (t *teller) rests(p *peer) {
	if sending := p.sending(); sending != nil {
		if rests := sending.Resting(); rests != nil {
			t.send(p, &control.PeerEvent{Event: &control.PeerEvent_Rests{Rests: rests}})
		}
	}
}

// sendAll tells the signaling node of everybody at this node of the same event.
func (t *teller) sendAll(event *control.PeerEvent) {
	event = t.current.stamp(event)
	for _, p := range t.peers {
		t.queue(p, event)
	}
}

// sendRoom tells everybody in the room, at all nodes.
func (t *teller) sendRoom(event *control.PeerEvent) {
	// From now on others read it.
	event = t.current.stamp(event)
	t.members.tellBranches(event)
	for _, p := range t.peers {
		t.queue(p, event)
	}
}

// tellOlder tells those whose signaling node does not know events of many changes.
func (t *teller) tellOlder(event *control.PeerEvent) {
	event = t.current.stamp(event)
	for _, p := range t.peers {
		if p.place == nil && !p.knowsRosterChanges {
			t.queue(p, event)
		}
	}
}

// queue is send for an event that has its fence, and that others may be reading already. A signaling node that does not read loses the peer.
func (t *teller) queue(p *peer, event *control.PeerEvent) {
	if p.outbox == nil || p.outbox.send(event) {
		return
	}
	t.log.Warn("signaling node does not read a peer's events: stream ended", "peer", string(p.id), "events", outboxEvents)
	p.outbox.end(nil)
	t.detach(p)
}

// sentAwayGrace is how long somebody stays who was sent away and has left: no link is there by which the owner could tell where it is by now.
const sentAwayGrace = 5 * time.Second

// detach gives a peer without a signaling node the grace time.
func (t *teller) detach(p *peer) {
	p.outbox = nil
	t.tellAway(p, true)
	grace := t.grace
	if p.sentAway {
		grace = min(grace, sentAwayGrace)
	}
	p.deadline = time.Now().Add(grace)
	t.loop.after(grace, t.expire)
}

// tellAway tells the owner whether a peer here has a signaling node.
func (t *teller) tellAway(p *peer, away bool) {
	if t.members.owner != nil && p.isHere() {
		t.members.tell(t.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Away{
			Away: &control.LinkAway{Peer: string(p.id), Away: away, Generation: p.generation},
		}})
	}
}

// supersede ends the stream of the signaling node that had the peer.
func (t *teller) supersede(p *peer) {
	if p.outbox != nil {
		p.outbox.end(t.current.stamp(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: "superseded: a newer signaling node has the peer"}}}))
	}
	p.outbox = nil
}

// endFormerStreams has signaling nodes attach the people here again: what they say has the former fence. live says that the room's former
// owner lives, since others whom those signaling nodes have may be there.
func (t *teller) endFormerStreams(live bool) {
	current := t.current.pin()
	fenced := t.current.stamp(&control.PeerEvent{Event: &control.PeerEvent_Fenced{Fenced: &control.Fenced{
		Current: control.FenceProto(current.Fence), Pin: control.PinProto(current), Live: live,
	}}})
	for _, p := range t.peers {
		if p.isHere() && p.outbox != nil {
			p.outbox.end(fenced)
			t.detach(p)
		}
	}
}
