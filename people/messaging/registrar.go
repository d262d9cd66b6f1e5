package messaging

import (
	"maps"
	"time"
)

// registrar tells the directories which users have clients here. It sends one frame at a time to each directory.
type registrar struct {
	node   *Node
	to     map[Peer]*telling
	number uint64
}

type telling struct {
	session uint64
	due     map[UserID]struct{}
	// synced is the mark of the view under which the directory knew all users, or 0.
	synced uint64

	// number is the number of the Register under way, or 0.
	number uint64
	sent   []UserID
	// view is the mark of the view if the Register under way was complete.
	view     uint64
	deadline time.Time
}

func newRegistrar(n *Node) *registrar { return &registrar{node: n, to: make(map[Peer]*telling)} }

// change registers users with their new directories when the view changes, and tells the former ones that they are
// gone.
func (r *registrar) change(v *view, now time.Time) {
	for peer := range r.to {
		if !v.has(peer) {
			delete(r.to, peer)
		}
	}
	for _, peer := range v.peers {
		if r.to[peer] == nil {
			r.to[peer] = &telling{session: 1, due: make(map[UserID]struct{})}
		}
	}
	for user, local := range r.node.locals {
		maps.DeleteFunc(local.batches, func(from source, _ *handed) bool { return !v.has(from.origin) })
		next, _ := v.directory(user)
		if next == local.directory {
			continue
		}
		r.tell(local.directory, user)
		r.tell(next, user)
		local.directory = next
		r.node.counters.Moved++
	}
	r.flushAll(now)
}

func (r *registrar) tell(to Peer, user UserID) {
	if t := r.to[to]; t != nil {
		t.due[user] = struct{}{}
	}
}

func (r *registrar) flushAll(now time.Time) {
	for _, peer := range r.node.view.peers {
		r.flush(peer, now)
	}
}

// flush sends a directory the next users to register, unless a frame is under way.
func (r *registrar) flush(to Peer, now time.Time) {
	t := r.to[to]
	if t == nil || t.number != 0 || len(t.due) == 0 && t.synced == r.node.view.mark {
		return
	}
	r.number++
	frame := Register{Number: r.number, Session: t.session, View: r.node.view.mark}
	for user := range t.due {
		if len(t.sent) == batchRegistrations {
			break
		}
		delete(t.due, user)
		t.sent = append(t.sent, user)
		if local := r.node.locals[user]; local != nil && local.directory == to {
			frame.Here = append(frame.Here, KeyOf(user))
		} else {
			frame.Gone = append(frame.Gone, KeyOf(user))
		}
	}
	frame.Complete = len(t.due) == 0
	t.number, t.deadline, t.view = frame.Number, now.Add(r.node.config.AckAfter), 0
	if frame.Complete {
		t.view = frame.View
	}
	r.node.counters.Registrations += len(t.sent)
	r.node.send(to, frame)
}

func (r *registrar) registered(from Peer, number uint64, now time.Time) {
	t := r.to[from]
	if t == nil || t.number != number {
		return
	}
	if t.view != 0 {
		t.synced = t.view
	}
	t.number, t.sent = 0, nil
	r.flush(from, now)
}

func (r *registrar) resync(from Peer, session uint64, now time.Time) {
	t := r.to[from]
	if t == nil || t.session > session {
		return
	}
	t.session, t.synced, t.number, t.sent = session+1, 0, 0, nil
	for user, local := range r.node.locals {
		if local.directory == from {
			t.due[user] = struct{}{}
		}
	}
	r.flush(from, now)
}

func (r *registrar) tick(now time.Time) {
	for peer, t := range r.to {
		if t.number == 0 || now.Before(t.deadline) {
			continue
		}
		for _, user := range t.sent {
			t.due[user] = struct{}{}
		}
		t.number, t.sent = 0, nil
		r.flush(peer, now)
	}
}
