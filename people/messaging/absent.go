package messaging

import (
	"slices"
	"time"
)

func (r *relay) hold(q *queue, now time.Time) {
	q.pause = min(max(2*q.pause, backoffBase), backoffMax)
	q.due = now.Add(q.pause)
}

// absent waits while the user may be between nodes.
func (r *relay) absent(q *queue, now time.Time) {
	if q.missing.IsZero() {
		q.missing = now
	}
	if !q.asked {
		q.asked = true
		r.asked[q.to.user] = append(r.asked[q.to.user], q)
		if len(r.asked[q.to.user]) == 1 {
			r.node.presence.Ask(q.to.user)
		}
	}
	if q.online && now.Sub(q.missing) >= r.node.config.HoldFor {
		r.fail(q, len(q.list), StateGaveUp)
		return
	}
	r.hold(q, now)
}

// Online answers Presence.Ask; not known if nobody can tell.
func (n *Node) Online(user UserID, online, known bool) {
	n.mu.Lock()
	defer n.unlock()
	queues := n.relay.asked[user]
	delete(n.relay.asked, user)
	for _, q := range queues {
		switch {
		case q.missing.IsZero():
		case !known: // the next miss asks again, until Config.Patience
			q.asked = false
		case !online:
			n.relay.fail(q, len(q.list), StateOffline)
		default:
			q.online, q.missing = true, n.config.Now()
		}
	}
}

func (r *relay) unask(q *queue) {
	left := slices.DeleteFunc(r.asked[q.to.user], func(other *queue) bool { return other == q })
	if r.asked[q.to.user] = left; len(left) == 0 {
		delete(r.asked, q.to.user)
	}
}
