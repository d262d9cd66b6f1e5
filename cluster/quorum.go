package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// forgetDead is how long a dead node counts as missing. A node that never comes back must not cost the majority for good.
const forgetDead = time.Hour

// subscribeAgain is the pause after an overflow. The lost events stay unknown: a node whose death is among them does not count as missing.
const subscribeAgain = time.Second

// Quorum judges whether this process is on the larger side of a network partition: whether it sees more live nodes than nodes that died
// without a goodbye within forgetDead. A media node on the smaller side must not confirm pins, because the other side may have moved its
// rooms. Every method may be called from any goroutine.
type Quorum struct {
	members *Cluster

	mu      sync.Mutex
	missing map[Name]time.Time // guarded by mu
}

// NewQuorum starts nothing. Without Run, no node is ever missing.
func NewQuorum(members *Cluster) *Quorum {
	return &Quorum{members: members, missing: map[Name]time.Time{}}
}

// Run follows the deaths and returns of nodes until ctx ends, and returns nil.
func (q *Quorum) Run(ctx context.Context) error {
	for {
		q.follow(ctx)
		if !backoff.Sleep(ctx, subscribeAgain) {
			return nil
		}
	}
}

// follow returns when ctx ends or the cluster ends its events, which it does to a subscriber that is too slow.
func (q *Quorum) follow(ctx context.Context) {
	events, cancel := q.members.Subscribe()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events:
			if !open {
				return
			}
			q.note(event, time.Now())
		}
	}
}

func (q *Quorum) note(event Event, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch event.Kind {
	case EventDead:
		q.missing[event.Node.Name()] = now
	case EventLeft, EventJoined:
		delete(q.missing, event.Node.Name())
	}
}

// Majority reports whether more nodes are live than missing. Exactly half is no majority: both sides of a partition could claim it.
func (q *Quorum) Majority() bool { return q.majorityIn(q.members.View(), time.Now()) }

func (q *Quorum) majorityIn(view *View, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(view.Nodes)+len(view.Signaling) > q.countMissing(view, now)
}

// countMissing forgets the nodes that are back and those that have been dead for longer than forgetDead. The caller holds mu.
func (q *Quorum) countMissing(view *View, now time.Time) int {
	for name, since := range q.missing {
		_, back := view.Nodes[name.ID]
		if name.Role == RoleSignaling {
			_, back = view.Signaling[name.ID]
		}
		if back || now.Sub(since) > forgetDead {
			delete(q.missing, name)
		}
	}
	return len(q.missing)
}
