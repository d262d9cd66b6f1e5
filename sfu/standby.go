package sfu

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/standby"
)

// Neighbours are the other media nodes, and the way to them.
type Neighbours interface {
	// Standby returns the node to which a room would go if this one died, and false if none has headroom for need besides what is promised to
	// other rooms. The node before stays the standby while it is able to.
	Standby(room ring.RoomID, before ring.NodeID, need headroom.Egress, promised map[ring.NodeID]headroom.Egress) (Neighbour, bool)
	Client(control string) (control.StandbyClient, error)
}

// Neighbour is a media node that stands by. It is zero if there is none.
type Neighbour struct {
	Node    ring.NodeID
	Boot    pin.BootID
	Control string
	// Media are its sockets.
	Media []netip.AddrPort
}

// standbys are both ends of standing by. It is nil without Config.Neighbours.
type standbys struct {
	near  Neighbours
	owner *standby.Owner
	table *standby.Table
}

func newStandbys(n *Node) *standbys {
	if n.cfg.Neighbours == nil {
		return nil
	}
	return &standbys{
		near: n.cfg.Neighbours, table: standby.NewTable(n.transport, n.log),
		owner: standby.NewOwner(standby.OwnerConfig{Boot: string(n.cfg.Boot), Control: n.cfg.Control, Client: n.cfg.Neighbours.Client, Choose: n.chooseStandby, Log: n.log}),
	}
}

func (s *standbys) run(ctx context.Context) {
	if s != nil {
		// Run returns nil.
		_ = s.owner.Run(ctx)
	}
}

// chooseStandby returns the node that is to stand by for the room's next connection: that of the other connections, while it has headroom.
func (r *room) chooseStandby() Neighbour {
	n := r.node
	if n.standby == nil {
		return Neighbour{}
	}
	need, promised := n.promised(r, time.Now())
	var before ring.NodeID
	if last := r.standby.Load(); last != nil {
		before = last.Node
	}
	chosen, found := n.standby.near.Standby(r.id, before, need, promised)
	if !found {
		chosen = Neighbour{}
	}
	r.standby.Store(&chosen)
	return chosen
}

// epochs is connection.Config.Epoch.
func (r *room) epochs() func() uint64 {
	if r.node.standby == nil {
		return nil
	}
	return func() uint64 { return r.current.pin().Fence.Epoch }
}

// promised returns what a room costs, and what other nodes would take of the other rooms if this node died.
func (n *Node) promised(of *room, now time.Time) (need headroom.Egress, others map[ring.NodeID]headroom.Egress) {
	others = map[ring.NodeID]headroom.Egress{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.rooms {
		if last := r.standby.Load(); last != nil && last.Node != "" && r != of {
			others[last.Node] = others[last.Node].Plus(r.load.charged(now))
		}
	}
	return of.load.charged(now), others
}

// chooseStandby returns the control address of the node that is to stand by for a room.
func (n *Node) chooseStandby(room string) string {
	n.mu.Lock()
	r := n.rooms[ring.RoomID(room)]
	n.mu.Unlock()
	if r == nil {
		return ""
	}
	return r.chooseStandby().Control
}

// standbyProto tells operators which node stands by, and for how many of the room's connections. The room's loop calls it.
func (r *room) standbyProto() *control.RoomStandby {
	chosen := r.standby.Load()
	if chosen == nil || chosen.Node == "" {
		return nil
	}
	told := &control.RoomStandby{Node: string(chosen.Node), Boot: string(chosen.Boot)}
	connections := uint32(0)
	for _, p := range r.peers {
		if p.uplink != nil {
			// No node stands by for a connection of its own for what a client sends.
			connections++
		}
		if p.connection == nil {
			continue
		}
		connections++
		if p.connection.IsPrepared() {
			told.Connections++
		}
	}
	told.All = connections > 0 && told.Connections == connections
	return told
}

// handOverTimeout is what the people of a frozen node wait beside the suspicion. Without an answer their numbers only jump.
const handOverTimeout = 75 * time.Millisecond

// continuing is a connection of a peer's former node that goes on here.
type continuing struct {
	offer *offer.Offer
	state connection.Continued
}

// claim takes the connection of a peer that comes from another node, under a confirmed pin. It asks that node to stop; of a
// node that does not answer, the last numbers are used. It is nil if nothing can go on: then the client is told to restart.
func (n *Node) claim(ctx context.Context, a attachment) *continuing {
	if n.standby == nil || !a.confirmed {
		return nil
	}
	h := n.standby.table.Claim(string(a.room), a.entry.GetId())
	if h == nil {
		return nil
	}
	o, err := offer.Read(h.Connection.GetOffer().GetSdp(), offerLimits(n.cfg.Limits))
	if err != nil {
		n.log.Info("a connection that this node stood by for cannot go on", "room", string(a.room), "peer", a.entry.GetId(), "error", err)
		return nil
	}
	c := &continuing{offer: o, state: connection.Continued{Held: h.Held, Connection: h.Connection, Numbers: h.Numbers, At: h.At}}
	if !h.Gone() {
		if final := n.askHandOver(ctx, a, h); final != nil {
			c.state.Numbers, c.state.At, c.state.Final = final, time.Now(), true
		}
	}
	return c
}

// askHandOver returns nil if the owner does not answer.
func (n *Node) askHandOver(ctx context.Context, a attachment, h *standby.Holding) *control.StandbyNumbers {
	client, err := n.standby.near.Client(h.Control)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	reply, err := client.HandOver(ctx, &control.HandOverRequest{Id: h.Connection.GetId(), Boot: h.Boot, Room: string(a.room), Pin: control.PinProto(a.pin)})
	if err != nil {
		n.log.Debug("connection not handed over", "room", string(a.room), "peer", a.entry.GetId(), "error", err)
		return nil
	}
	return reply.GetNumbers()
}

// goOn makes a claimed connection the peer's. It runs outside the room's loop, because it waits for the room's media.
func (s *session) goOn(ctx context.Context, c *continuing) {
	if c == nil {
		return
	}
	s.peer.negotiation.Lock()
	defer s.peer.negotiation.Unlock()
	r, p := s.room, s.peer
	cfg := connection.Config{
		Room: r.media, Owner: &mediaOwner{room: r, peer: p, strikeName: strikeName(p.entry)}, Key: string(r.id) + "\n" + string(p.id), Peer: p.id,
		Log: r.log.With("peer", string(p.id)), Tally: &r.node.tally, MediaTCP: r.node.MediaTCP(), Epoch: r.epochs(),
	}
	err := r.do(ctx, func() {
		cfg.CanPublish, cfg.Publishable, cfg.CanSubscribe, cfg.PathStart = p.canPublish, p.sources, p.canSubscribe, p.path
		r.media.SetTable(p.id, tableOf(slotsOf(c.state.Numbers), r.node.cfg.Limits.SlotsPerPeer))
	})
	if err != nil {
		return
	}
	cfg.Shard = int(r.turn.Add(1)-1) / shardPeers % len(r.parts)
	cfg.Batch = r.parts[cfg.Shard]
	if cfg.Candidates, err = r.node.candidates(); err != nil {
		s.restartMedia(ctx, err)
		return
	}
	continued, err := connection.Continue(r.node.transport, c.offer, c.state, cfg)
	if err != nil {
		s.restartMedia(ctx, err)
		return
	}
	installed := false
	err = r.do(ctx, func() {
		if p.gone.Load() || p.connection != nil {
			return
		}
		continued.Silence(p.entry.GetSilenced())
		p.connection, p.connected, installed = continued, false, true
		r.count()
		r.people.arrive(p)
	})
	if err != nil || !installed {
		continued.Close()
		return
	}
	continued.Begin()
	r.standByFor(p.id, r.chooseStandby().Control, continued)
	r.log.Info("connection of another node goes on here", "peer", string(p.id), "handed_over", c.state.Final)
}

// restartMedia asks for an offer, because the client was told that its connection goes on, and it does not.
func (s *session) restartMedia(ctx context.Context, cause error) {
	s.room.log.Info("a connection that this node stood by for cannot go on", "peer", string(s.peer.id), "error", cause)
	_ = s.room.do(ctx, func() {
		s.room.teller.send(s.peer, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Reason: reofferSilent}}})
	})
}

// tellStandby tells everybody which node can go on with the room's connections, and whether with all of them, if that has changed: the room goes there,
// on a mere suspicion too if nobody would notice. It does not wait if the room is busy.
func (r *room) tellStandby() {
	r.tryPost(func() {
		now := r.standbyProto()
		if now.GetConnections() == 0 {
			now = &control.RoomStandby{}
		}
		if now.GetBoot() == r.toldStandby.GetBoot() && now.GetAll() == r.toldStandby.GetAll() {
			return
		}
		r.toldStandby = now
		r.teller.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Standby{Standby: now}})
	})
}

func slotsOf(numbers *control.StandbyNumbers) []*control.Slot {
	var slots []*control.Slot
	for _, s := range numbers.GetStreams() {
		slots = append(slots, s.GetSlot())
	}
	return slots
}

// standByFor tells the node that stands by of a peer's new connection.
func (r *room) standByFor(p forward.PeerID, at string, c *connection.Connection) {
	if r.node.standby != nil {
		r.node.standby.owner.Add(at, string(r.id), string(p), c)
	}
}

// standbyService implements control.Standby for a node.
type standbyService struct {
	control.UnimplementedStandbyServer

	node *Node
}

// Hold stands by for another node's connections.
func (s *standbyService) Hold(stream control.Standby_HoldServer) error {
	return s.node.standby.table.Serve(stream)
}

// HandOver stops a connection whose room has a higher pin.
func (s *standbyService) HandOver(_ context.Context, request *control.HandOverRequest) (*control.HandOverReply, error) {
	n := s.node
	higher, err := request.GetPin().Value()
	switch {
	case err != nil:
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("the pin is not usable: %v", err))
	case request.GetBoot() != string(n.cfg.Boot):
		return nil, status.Error(codes.FailedPrecondition, "the request names another process")
	case request.GetRoom() == "" || len(request.GetRoom()) > maxNameBytes:
		return nil, status.Error(codes.InvalidArgument, "the request names no room")
	}
	room := ring.RoomID(request.GetRoom())
	n.fence(room, higher, true)
	n.mu.Lock()
	r, held := n.rooms[room]
	n.mu.Unlock()
	if held && !r.pin().Fence.Less(higher.Fence) {
		return nil, status.Error(codes.FailedPrecondition, "the room has a pin here that is not lower")
	}
	return &control.HandOverReply{Numbers: n.standby.owner.HandOver(request.GetId(), request.GetRoom())}, nil
}
