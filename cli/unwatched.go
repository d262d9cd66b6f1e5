package cli

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// unwatchedFor is how long a media node must have been the one to leave before it does: signaling nodes that restart come
	// back within it, and a media node keeps its people for three times as long.
	unwatchedFor = 10 * time.Second
	// lingerFor is how long its media goes on after it has left, while the people of its rooms move.
	lingerFor = 5 * time.Second
)

// errUnwatched ends the process, so that whoever supervises it learns of it and starts it again. It holds no rooms then, and stays.
var errUnwatched = errors.New("no signaling node reached the control port, though others were reached: is it blocked?")

// unwatched judges whether a media node is of no use: gossip holds it alive, but no signaling node reaches its control port, so
// nobody can join its rooms and its people are let go after a while. Only the node itself can tell that from a
// signaling node that is cut off.
type unwatched struct {
	self  ring.NodeID
	since time.Time // when this node became the one to leave; zero while it is not
	left  atomic.Bool
}

// leaves reports whether the node is to leave now, once.
func (u *unwatched) leaves(view *cluster.View, now time.Time) bool {
	switch {
	case !u.next(view):
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = now
	case now.Sub(u.since) >= unwatchedFor:
		return !u.left.Swap(true)
	}
	return false
}

// next reports whether this node is the next to leave: nobody watches it and it has rooms; there are signaling nodes, and they watch a
// node that can take rooms; and no node of a lower id is in the same case, so that one leaves at a time.
func (u *unwatched) next(view *cluster.View) bool {
	idle := func(n cluster.Node) bool { return n.Load.Watchers == 0 && n.Load.Rooms > 0 }
	if self, live := view.Nodes[u.self]; !live || !idle(self) || len(view.Signaling) == 0 {
		return false
	}
	refuge := false
	for id, node := range view.Nodes {
		if id < u.self && idle(node) {
			return false
		}
		refuge = refuge || node.Load.Watchers > 0 && !node.Draining
	}
	return refuge
}

// linger waits until the media of a node that has left may end. It returns why the node left, or nil if it was told to.
func (u *unwatched) linger(ctx context.Context) error {
	if !u.left.Load() {
		return nil
	}
	select {
	case <-time.After(lingerFor):
	case <-ctx.Done():
	}
	return errUnwatched
}
