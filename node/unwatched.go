package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// unwatchedFor lets signaling nodes restart; a media node keeps its people for three times as long.
	unwatchedFor = 10 * time.Second
	// lingerFor is how long media goes on after the node has left.
	lingerFor = 5 * time.Second
)

// errUnwatched ends the process, so that its supervisor starts it again.
var errUnwatched = errors.New("no signaling node reached the control port, though others were reached: is it blocked?")

// unwatched judges whether gossip holds a media node alive that no signaling node reaches. Only the node itself can tell that from
// a signaling node that is cut off.
type unwatched struct {
	self ring.NodeID
	// since is when next began to hold, and zero while it does not.
	since time.Time
	left  atomic.Bool
}

// leaves is true once.
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

// next reports whether this node is to leave: it has rooms and no watcher, while another node is watched and does not drain.
// Of several such nodes the lowest id leaves first.
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

// linger waits for the media's end. It returns errUnwatched if the node left by itself.
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
