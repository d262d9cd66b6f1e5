package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/ring"
)

// delegate posts memberlist's callbacks to the loop. It must not wait, because memberlist holds its own locks in some
// of them.
type delegate struct{ c *Cluster }

func (d delegate) NodeMeta(int) []byte { return *d.c.meta.Load() }

// NotifyMsg drops the message if the mailbox is full.
func (d delegate) NotifyMsg(in []byte) {
	d.c.catch("a gossiped message broke its reading: dropped", func() { d.message(in) })
}

func (d delegate) message(in []byte) {
	m, err := parseMessage(in)
	if err != nil {
		d.c.logDropped("gossiped message dropped", err)
		return
	}
	select {
	case d.c.mailbox <- func() { d.c.handle(m) }:
	default:
	}
}

func (d delegate) GetBroadcasts(overhead, limit int) (messages [][]byte) {
	d.c.catch("the broadcasts broke", func() { messages = d.c.broadcasts.GetBroadcasts(overhead, limit) })
	return messages
}

func (d delegate) LocalState(bool) (state []byte) {
	d.c.catch("the state for an exchange broke", func() { state = stateOf(d.c.config.Node, d.c.View()) })
	return state
}

func stateOf(self Node, view *View) []byte {
	messages := []message{{kind: kindHello, from: self}}
	for _, nodes := range []map[ring.NodeID]Node{view.Nodes, view.Signaling} {
		for _, node := range nodes {
			if node.Load.Seq > 0 {
				messages = append(messages, message{kind: kindLoad, from: node, load: node.Load})
			}
		}
	}
	for _, gone := range view.departed {
		kind := kindDead
		if gone.how == DepartureLeft {
			kind = kindLeave
		}
		messages = append(messages, message{kind: kind, from: gone.node, age: time.Since(gone.at)})
	}
	return encodeState(messages)
}

func (d delegate) MergeRemoteState(in []byte, _ bool) {
	d.c.catch("a state exchange broke its reading: dropped", func() { d.merge(in) })
}

func (d delegate) merge(in []byte) {
	messages, passed, err := parseState(in)
	if err != nil {
		d.c.logDropped("state exchange dropped", err)
		return
	}
	if passed != nil {
		d.c.logDropped("message of a state exchange dropped", passed)
	}
	d.c.post(func() {
		for _, m := range messages {
			d.c.catch("a message of a state exchange broke its handling: dropped", func() { d.c.handle(m) }, "from", m.from.ID)
			d.c.startup.hear(m.from)
		}
		if newer, found := d.c.startup.met(messages); found {
			d.c.older <- newer
		}
	})
}

func (d delegate) NotifyJoin(n *memberlist.Node) {
	d.catch(n, func() { d.member(n, (*members).join) })
}

func (d delegate) NotifyUpdate(n *memberlist.Node) {
	d.catch(n, func() { d.member(n, (*members).update) })
}

// catch runs f, which handles news about the member n, and logs a panic of it.
func (d delegate) catch(n *memberlist.Node, f func()) {
	d.c.catch("news of a member broke its handling: dropped", f, "member", n.Name)
}

func (d delegate) member(n *memberlist.Node, change func(*members, Node) []Event) {
	name, text := n.Name, slices.Clone(n.Meta)
	if name == d.c.name {
		return
	}
	node, err := parseMember(name, text)
	if err != nil {
		d.c.log.Warn("member ignored", "err", err)
		return
	}
	if node.Later {
		d.c.logDropped("member speaks a later version of gossip: it is used as far as it can be read", fmt.Errorf("%w: some of the metadata of %s", errForeign, name))
	}
	d.c.addresses.put(name, n.Address())
	d.c.post(func() {
		d.c.startup.hear(node)
		d.c.publish(change(d.c.members, node))
	})
}

// NotifyLeave is called for a death and for a leave alike: memberlist does not tell them apart.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	d.catch(n, func() { d.leave(n) })
}

func (d delegate) leave(n *memberlist.Node) {
	node, err := parseMemberName(n.Name)
	if err != nil || n.Name == d.c.name {
		return
	}
	d.c.addresses.remove(n.Name)
	d.c.post(func() { d.c.publish(d.c.members.die(node)) })
}
