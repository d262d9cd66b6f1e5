package sfu

import (
	"net"
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/data"
)

// linkedMessages is how many messages may wait for a link while data is still added. More would end the link.
const linkedMessages = linkMessages / 4

// dataBytes bounds a packet of another node or a server: that of a client, with its sender.
const dataBytes = data.MaxMessageBytes + 4096

// dataStreams are the streams of data channels that an offer says are open from the start.
func dataStreams(o *control.Offer) data.Streams {
	if o.GetDataNegotiated() {
		return data.Negotiated()
	}
	return data.Streams{data.Reliable: uint16(o.GetDataReliable()), data.Lossy: uint16(o.GetDataLossy())}
}

// serveData returns what serves the data channels of a connection.
func (r *room) serveData(p *peer, streams data.Streams, strikeName string) func(net.Conn) {
	client := data.Client{
		Sender: data.Sender{Peer: string(p.id), Identity: p.entry.GetIdentity()}, MaySend: p.mayData.Load, Streams: streams,
		Log: r.log.With("peer", string(p.id)), Panics: r.node.panics, Broke: func() { r.node.panics.Strike(strikeName) },
	}
	return func(conn net.Conn) { r.data.Serve(conn, client) }
}

// messages carries those of data channels between the people here and the room's other nodes.
type messages struct {
	members *members
	data    *data.Room
	loop    taskLoop
	tally   *data.Tally
	// linked says that the room has, or had, other nodes.
	linked atomic.Bool
}

// spread hands a client's message to the room's other nodes. It waits for nothing, and does nothing while the room has no others.
func (ms *messages) spread(m data.Message) {
	if ms.linked.Load() && !ms.loop.tryPost(func() { ms.tell(dataProto(m), nil) }) {
		ms.tally.Unspread.Add(1)
	}
}

// tell has the other nodes of a room deliver a message, but for the one that it came from. It runs on the room's loop.
func (ms *messages) tell(m *control.Data, from *member) {
	tell := func(to *member) {
		switch {
		case to == nil || to == from || to.link == nil:
		case len(to.link.out) > linkedMessages:
			ms.tally.Unspread.Add(1)
		default:
			ms.members.tell(to, &control.LinkMessage{Message: &control.LinkMessage_Data{Data: m}})
		}
	}
	tell(ms.members.owner)
	for _, branch := range ms.members.branches {
		tell(branch)
	}
}

// hear delivers a message of another node or of a server here. It may be called by any goroutine.
func (ms *messages) hear(m *control.Data) {
	if len(m.GetPacket()) > dataBytes {
		return
	}
	kind := data.Reliable
	if m.GetLossy() {
		kind = data.Lossy
	}
	ms.data.Deliver(data.Message{
		Kind: kind, From: m.GetFrom(), Bytes: m.GetPacket(), To: data.Destinations{Identities: m.GetIdentities(), SIDs: m.GetSids()},
	})
}

func dataProto(m data.Message) *control.Data {
	return &control.Data{From: m.From, Lossy: m.Kind == data.Lossy, Packet: m.Bytes, Identities: m.To.Identities, Sids: m.To.SIDs}
}
