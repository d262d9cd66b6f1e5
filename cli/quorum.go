package cli

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
)

// A node that never comes back must not cost the majority for good.
const forgetDead = time.Hour

// quorum judges whether this node sees more than half of the nodes that live or died without a goodbye.
type quorum struct {
	members *cluster.Cluster

	mu      sync.Mutex // guards the fields below
	missing map[cluster.Name]time.Time
}

func newQuorum(members *cluster.Cluster) *quorum {
	return &quorum{members: members, missing: map[cluster.Name]time.Time{}}
}

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
		q.missing[event.Node.Name()] = now
	case cluster.EventLeft, cluster.EventJoined:
		delete(q.missing, event.Node.Name())
	}
}

func (q *quorum) majority() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	view := q.members.View()
	return outnumbers(len(view.Nodes)+len(view.Signaling), q.absent(view, time.Now()))
}

// absent counts the missing, and forgets those back or long gone.
func (q *quorum) absent(view *cluster.View, now time.Time) int {
	for name, since := range q.missing {
		_, back := view.Nodes[name.ID]
		if name.Role == cluster.RoleSignaling {
			_, back = view.Signaling[name.ID]
		}
		if back || now.Sub(since) > forgetDead {
			delete(q.missing, name)
		}
	}
	return len(q.missing)
}

func outnumbers(live, missing int) bool { return live > missing }
