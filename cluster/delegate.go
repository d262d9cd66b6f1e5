package cluster

import (
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate receives memberlist's callbacks. They run on memberlist's goroutines, some with its
// locks held, so each only parses, posts to the loop, and returns.
type delegate struct{ c *Cluster }

// NodeMeta returns the metadata for our next alive message.
func (d delegate) NodeMeta(int) []byte { return *d.c.meta.Load() }

// NotifyMsg takes one gossiped message. It drops the message when the mailbox is full.
func (d delegate) NotifyMsg(in []byte) {
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

// GetBroadcasts returns messages to put into a packet.
func (d delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.c.broadcasts.GetBroadcasts(overhead, limit)
}

// LocalState returns our side of a state exchange: who we are, all loads, all departures.
func (d delegate) LocalState(bool) []byte {
	view := d.c.View()
	messages := []message{{kind: kindHello, from: d.c.config.Node}}
	for _, node := range view.Nodes {
		if node.Load.Seq > 0 {
			messages = append(messages, message{kind: kindLoad, from: node, load: node.Load})
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

// MergeRemoteState takes the other side's LocalState. memberlist has posted the joins of that
// exchange before, so after this task the view has all that the other side knew.
func (d delegate) MergeRemoteState(in []byte, _ bool) {
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
			d.c.handle(m)
		}
	})
}

// NotifyJoin takes a member that was unknown or dead and is alive.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	d.member(n, (*members).join)
}

// NotifyUpdate takes a live member's new metadata.
func (d delegate) NotifyUpdate(n *memberlist.Node) {
	d.member(n, (*members).update)
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
	d.c.addresses.put(name, n.Address())
	d.c.post(func() { d.c.publish(change(d.c.members, node)) })
}

// NotifyLeave takes a member that died or left; memberlist does not say which.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	node, err := parseMemberName(n.Name)
	if err != nil || n.Name == d.c.name {
		return
	}
	d.c.addresses.remove(n.Name)
	d.c.post(func() { d.c.publish(d.c.members.die(node)) })
}
