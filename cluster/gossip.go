package cluster

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// broadcast is one of our messages in the transmit queue. A newer one of the same
// kind and boot replaces it there, so the queue holds at most two messages a boot.
type broadcast struct {
	name string
	text []byte
}

func newBroadcast(m message) broadcast {
	return broadcast{name: string(rune('0'+m.kind)) + memberName(m.from), text: m.encode()}
}

// Invalidates reports whether b replaces other.
func (b broadcast) Invalidates(other memberlist.Broadcast) bool {
	named, ok := other.(memberlist.NamedBroadcast)
	return ok && named.Name() == b.name
}

// Name makes the queue replace by name instead of by search.
func (b broadcast) Name() string { return b.name }

// Message is the wire form.
func (b broadcast) Message() []byte { return b.text }

// Finished is told when the message has been sent often enough.
func (b broadcast) Finished() {}

// heard handles a message of another member, on the loop. memberlist hands user
// messages only to those whom the sender happened to pick, so everybody passes on what is
// news to him, once.
func (c *Cluster) heard(m message) {
	switch m.kind {
	case kindLoad:
		if m.from.Boot == c.config.Node.Boot || !c.members.setLoad(m.from, m.load) {
			return
		}
		c.broadcasts.QueueBroadcast(newBroadcast(m))
		c.publishSoon()
	case kindLeave:
		events, news := c.members.leave(m.from, m.age)
		if !news {
			return
		}
		if m.age == 0 { // else those who were there have passed it on
			c.broadcasts.QueueBroadcast(newBroadcast(m))
		}
		c.publish(events)
	case kindDead:
		c.members.heardDead(m.from, m.age)
		c.publishSoon()
	case kindHello:
		if m.from.Boot != c.config.Node.Boot && c.members.settledAt.IsZero() {
			c.members.settledAt = time.Now()
			c.log.Info("cluster view settled", "with", m.from.ID, "members", len(c.members.live))
			c.publish(nil)
		}
	}
}
