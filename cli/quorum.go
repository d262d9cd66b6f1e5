package cli

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// forgetDead is how long a node that died counts as a member who is missing. An
// operator who never brings it back should not lose the majority for good.
const forgetDead = time.Hour

// quorum judges whether this node is with the majority of its cluster: more than
// half of the nodes that are there or died without saying goodbye.
type quorum struct {
	members *cluster.Cluster

	mu      sync.Mutex // guards the fields below
	missing map[ring.NodeID]time.Time
}

func newQuorum(members *cluster.Cluster) *quorum {
	return &quorum{members: members, missing: map[ring.NodeID]time.Time{}}
}

// run keeps the list of the missing until ctx ends.
func (q *quorum) run(ctx context.Context) error {
	events, cancel := q.members.Subscribe()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events:
			if !open {
				return nil
			}
			q.note(event, time.Now())
		}
	}
}

func (q *quorum) note(event cluster.Event, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch event.Kind {
	case cluster.EventDead:
		q.missing[event.Node.ID] = now
	case cluster.EventLeft, cluster.EventJoined:
		delete(q.missing, event.Node.ID)
	case cluster.EventUpdated, cluster.EventDoubted, cluster.EventTrusted:
	}
}

// majority reports whether more than half of the cluster is in sight.
func (q *quorum) majority() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	live := q.members.View().Nodes
	return outnumbers(len(live), q.absent(live, time.Now()))
}

// absent counts the missing, and forgets those who are back or long gone.
func (q *quorum) absent(live map[ring.NodeID]cluster.Node, now time.Time) int {
	for id, since := range q.missing {
		if _, back := live[id]; back || now.Sub(since) > forgetDead {
			delete(q.missing, id)
		}
	}
	return len(q.missing)
}

// outnumbers reports whether the live are more than half of all.
func outnumbers(live, missing int) bool { return live > missing }
