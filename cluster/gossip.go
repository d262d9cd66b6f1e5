package cluster

import (
	"time"

	"github.com/hashicorp/memberlist"
)

type broadcast struct {
	name string
	text []byte
}

func newBroadcast(m message) broadcast {
	return broadcast{name: string(rune('0'+m.kind)) + memberName(m.from), text: m.encode()}
}

func (b broadcast) Name() string { return b.name }

// Invalidates is never called by memberlist, because every broadcast has a name.
func (b broadcast) Invalidates(memberlist.Broadcast) bool { return false }

func (b broadcast) Message() []byte { return b.text }

func (b broadcast) Finished() {}

// handle passes a piece of news on, once, because memberlist tells only a few members itself.
func (c *Cluster) handle(m message) {
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
		if m.age == 0 {
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
