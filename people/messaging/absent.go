package messaging

import (
	"slices"
	"time"
)

func (o *outbox) backOff(q *queue, now time.Time) {
	q.pause = min(max(2*q.pause, backoffBase), backoffMax)
	q.due = now.Add(q.pause)
}

// absent is called when no holder has a client for the queue. It asks presence whether the user is online, and waits
// as long as the user may be between two nodes.
func (o *outbox) absent(q *queue, now time.Time) {
	if q.missing.IsZero() {
		q.missing = now
	}
	if !q.asked {
		q.asked = true
		o.asked[q.to.user] = append(o.asked[q.to.user], q)
		if len(o.asked[q.to.user]) == 1 {
			o.node.presence.Ask(q.to.user)
		}
	}
	if q.online && now.Sub(q.missing) >= o.node.config.HoldFor {
		o.fail(q, len(q.list), StateGaveUp)
		return
	}
	o.backOff(q, now)
}

// Online takes the answer to Presence.Ask. With known false, nobody can tell whether the user is online.
func (n *Node) Online(user UserID, online, known bool) {
	n.mu.Lock()
	defer n.unlock()
	queues := n.outbox.asked[user]
	delete(n.outbox.asked, user)
	for _, q := range queues {
		switch {
		case q.missing.IsZero():
		// The next miss asks presence again, until Config.Patience is over.
		case !known:
			q.asked = false
		case !online:
			n.outbox.fail(q, len(q.list), StateOffline)
		default:
			q.online, q.missing = true, n.config.Now()
		}
	}
}

func (o *outbox) unask(q *queue) {
	left := slices.DeleteFunc(o.asked[q.to.user], func(other *queue) bool { return other == q })
	if o.asked[q.to.user] = left; len(left) == 0 {
		delete(o.asked, q.to.user)
	}
}
