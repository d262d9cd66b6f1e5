package sfu

import (
	"cmp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// strikeName is the token's subject, which a peer cannot choose.
func strikeName(entry *control.Peer) string { return cmp.Or(entry.GetIdentity(), entry.GetId()) }

func brokeRefusal() *refusal {
	return refuse(control.Refusal_REFUSAL_BROKE, "the node broke while it handled what this peer sent")
}

// closeSoon does not hold up the room's loop.
func (n *Node) closeSoon(closing func()) {
	n.closers.Go(func() { n.panics.Survives(n.log, "a connection broke its closing", closing) })
}

func (r *room) survive(task func()) {
	r.node.panics.Survives(r.log, "a task broke the room's loop: it is given up", task)
}

// handleOrBreak ends the stream of a message that panics. Who sends two leaves the room.
func (s *session) handleOrBreak(message *control.PeerMessage) (goesOn bool) {
	if caught := panics.Catch(func() { goesOn = s.handleNow(message) }); caught != nil {
		s.broke(caught)
		return false
	}
	return goesOn
}

// broke runs on the loop.
func (s *session) broke(caught *panics.Error) {
	r, p := s.room, s.peer
	guard, name := r.node.panics, strikeName(p.entry)
	guard.Report(r.log, caught, "a message broke the room's handling of it: stream ended", "peer", string(p.id), "identity", p.entry.GetIdentity())
	guard.Strike(name)
	s.outbox.end(brokeRefusal().event())
	switch {
	case p.gone.Load() || p.outbox != s.outbox: // leaving anyway
	case guard.Refuses(name):
		r.remove(p, "what it sends breaks the room")
	default:
		r.detach(p)
	}
}

// abandon undoes an Attach that panicked. It runs on the loop.
func (r *room) abandon(a attachment) {
	if p, here := r.peers[forward.PeerID(a.entry.GetId())]; here && !p.expected {
		r.supersede(p)
		r.detach(p)
	}
}

// blame is deferred where an authentic packet is read. The transport recovers, and ends the connection.
func (c *connection) blame() {
	if fault := recover(); fault != nil {
		c.onBroken()
		panic(fault) //nolint:forbidigo // it goes on to the transport
	}
}

// mediaBroke is forward's OnBroken and must not block.
func (r *room) mediaBroke(id forward.PeerID) {
	select {
	case r.tasks <- func() { r.endConnection(id) }:
	default: // busy; the media is dropped already
	}
}

func (r *room) endConnection(id forward.PeerID) {
	p, here := r.peers[id]
	if !here || p.connection == nil {
		return
	}
	r.node.panics.Strike(strikeName(p.entry))
	r.node.closeSoon(p.connection.close)
	p.connection, p.connected = nil, false
	r.count()
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: control.TransportState_TRANSPORT_STATE_FAILED}}})
}
