package sfu

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// negotiation answers one offer.
type negotiation struct {
	session *session
	message *control.Offer
	// present is the peer's connection when the negotiation began, or nil.
	present      *connection.Connection
	canPublish   bool
	publishable  uint32
	canSubscribe bool
	strikeName   string
	path         uint64
	// trace is zero, unless this is the first offer after an attach.
	trace traces.Span
}

var (
	errBroken           = errors.New("the offer broke the node's answering")
	errConnectionClosed = errors.New("the connection is closed")
	errBrokenPeer       = errors.New("what this peer sent has broken the node's handling of it twice")
)

// catchOffer answers the offer once a core is free, and gives up the offer's connection when that panics. It needs the peer's negotiation.
func (n *negotiation) catchOffer(ctx context.Context) (sdp string, err error) {
	node := n.session.room.node
	if node.panics.Refuses(n.strikeName) {
		return "", errBrokenPeer
	}
	answering := node.answering
	select {
	case answering <- struct{}{}:
		defer func() { <-answering }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	whole := !node.panics.Catch(n.session.room.log, "an offer broke the node's answering of it", func() { sdp, err = n.run(ctx) },
		"peer", string(n.session.peer.id))
	if whole {
		return sdp, err
	}
	node.panics.Strike(n.strikeName)
	if n.present != nil {
		n.present.GiveUp()
	}
	return "", errBroken
}

// run uses the peer's connection if the offer is of the same RTCPeerConnection, else a new one.
func (n *negotiation) run(ctx context.Context) (string, error) {
	limits := n.session.room.node.cfg.Limits
	if id := n.message.GetId(); id == "" || len(id) > maxIDBytes {
		return "", fmt.Errorf("%w: its id has %d bytes, want 1 to %d", offer.ErrBad, len(id), maxIDBytes)
	}
	o, err := offer.Read(n.message.GetSdp(), offerLimits(limits))
	if err != nil {
		return "", err
	}
	if n.present != nil && !n.message.GetFresh() && (n.message.GetPart() == control.Part_PART_DOWNLINK && n.present.Meet(o) || n.present.Accepts(o)) {
		if n.movable(o) {
			n.present.StandBy(n.session.room.chooseStandby().Media)
		}
		return n.present.Answer(n.message, o)
	}
	return n.replace(ctx, o)
}

// movable reports whether another node can go on with the connection. None can with DTLS and SCTP, nor with two connections.
func (n *negotiation) movable(o *offer.Offer) bool {
	return n.message.GetPart() == control.Part_PART_UNSPECIFIED && !o.HasData()
}

// replace answers the offer with a new connection, and then retires the present one.
func (n *negotiation) replace(ctx context.Context, o *offer.Offer) (string, error) {
	r, p := n.session.room, n.session.peer
	if err := n.setTable(ctx); err != nil {
		return "", err
	}
	var standby Neighbour
	movable := n.movable(o)
	if movable {
		standby = r.chooseStandby()
	}
	fresh, err := n.connect(o, standby.Media) //nolint:contextcheck // data channels end with their connection
	if err != nil {
		return "", err
	}
	sdp, err := fresh.Answer(n.message, o)
	if err != nil {
		fresh.Close()
		return "", err
	}
	if movable {
		r.standByFor(p.id, standby.Control, fresh)
	}
	installed := false
	err = r.do(ctx, func() {
		if p.gone.Load() {
			return
		}
		n.install(fresh)
		fresh.Permit(p.canPublish, p.sources)
		fresh.Silence(p.entry.GetSilenced() | p.forbidden())
		installed = true
		if !n.message.GetFresh() {
			r.news.rests(p.id) // What rested at another node does not here.
		}
		r.count()
	})
	if err == nil && installed {
		return sdp, nil
	}
	fresh.Close()
	return "", errConnectionClosed
}

// install makes a connection the peer's, and closes those that it replaces. It runs on the loop.
func (n *negotiation) install(fresh *connection.Connection) {
	r, p := n.session.room, n.session.peer
	old := []*connection.Connection{p.uplink}
	if n.message.GetPart() == control.Part_PART_UPLINK {
		p.uplink = fresh
	} else {
		old = p.takeConnections()
		p.connection = fresh
	}
	for _, c := range old {
		if c != nil {
			r.node.closeSoon(func() {
				c.Retire(fresh)
				c.Close()
			})
		}
	}
}

// setTable has the slots show the same people as at the node that the peer comes from. It runs on the loop, so that it does not come
// after forward.Room.RemovePeer.
func (n *negotiation) setTable(ctx context.Context) error {
	r, p := n.session.room, n.session.peer
	table := tableOf(n.message.GetSlots(), r.node.cfg.Limits.SlotsPerPeer)
	if n.present != nil || len(table) == 0 {
		return nil
	}
	return r.do(ctx, func() {
		if !p.gone.Load() {
			r.media.SetTable(p.id, table)
		}
	})
}

// connect opens a connection. Its path begins with what is known of the client's.
func (n *negotiation) connect(o *offer.Offer, standby []netip.AddrPort) (*connection.Connection, error) {
	r, p := n.session.room, n.session.peer
	told, err := r.node.candidates()
	if err != nil {
		return nil, err
	}
	shard := int(r.turn.Add(1)-1) / shardPeers % len(r.parts)
	path, uplink := n.path, n.message.GetPart() == control.Part_PART_UPLINK
	if n.present != nil {
		path = n.present.Path().Target()
	}
	return connection.Open(r.node.transport, o, connection.Config{
		Room: r.media, Batch: r.parts[shard], Shard: shard, Owner: &mediaOwner{room: r, peer: p, strikeName: n.strikeName},
		Key: string(r.id) + "\n" + string(p.id), Peer: p.id,
		CanPublish: n.canPublish, Publishable: n.publishable, CanSubscribe: n.canSubscribe && !uplink,
		Uplink: uplink, Fresh: n.message.GetFresh(), Unmet: n.message.GetPart() == control.Part_PART_DOWNLINK_UNMET,
		Compatible: n.present != nil && n.present.NeedsCompatible(), Candidates: told, Standby: standby, Epoch: r.epochs(), MediaTCP: r.node.MediaTCP(), PathStart: path,
		Log: r.log.With("peer", string(p.id)), Tally: &r.node.tally, Connected: r.node.cfg.Metrics.Connected, Trace: n.trace,
		Data: r.serveData(p, dataStreams(n.message), n.strikeName),
	})
}

// mediaOwner hears of a peer's connection, and passes it to the room's loop.
type mediaOwner struct {
	room       *room
	peer       *peer
	strikeName string
}

// Gone is part of connection.Owner.
func (o *mediaOwner) Gone() bool { return o.peer.gone.Load() }

// PathChanged is part of connection.Owner.
func (o *mediaOwner) PathChanged() { o.room.news.path(o.peer.id) }

// SendersChanged is part of connection.Owner.
func (o *mediaOwner) SendersChanged() { o.room.news.sends(o.peer.id) }

// RestsChanged is part of connection.Owner.
func (o *mediaOwner) RestsChanged() { o.room.news.rests(o.peer.id) }

// PreparedChanged is part of connection.Owner.
func (o *mediaOwner) PreparedChanged() { o.room.tellStandby() }

// Unreached is part of connection.Owner.
func (o *mediaOwner) Unreached() {
	o.room.tryPost(func() {
		if !o.peer.gone.Load() {
			o.room.teller.send(o.peer, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Reason: reofferUnreached}}})
		}
	})
}

// Broke is part of connection.Owner.
func (o *mediaOwner) Broke() { o.room.node.panics.Strike(o.strikeName) }

// StateChanged is part of connection.Owner.
func (o *mediaOwner) StateChanged(c *connection.Connection, state control.TransportState) {
	o.room.post(func() { o.room.transportChanged(o.peer, c, state) })
}
