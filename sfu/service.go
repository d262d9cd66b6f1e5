package sfu

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

const (
	// Silence is missing heartbeats (package failover); the stream's end is a death. Where another node stands by, less silence is enough.
	heartbeatEvery        = 200 * time.Millisecond
	heartbeatStandbyEvery = 100 * time.Millisecond
	// How long a stream's end waits until queued events are read.
	lastWords = 2 * time.Second
)

// Register adds the control service to a server. It opens rooms only while Run runs.
func (n *Node) Register(server *grpc.Server) {
	control.RegisterMediaServer(server, &service{node: n})
	control.RegisterLinksServer(server, &links{node: n})
	if n.standby != nil {
		control.RegisterStandbyServer(server, &standbyService{node: n})
	}
}

// service implements control.Media for a node.
type service struct {
	control.UnimplementedMediaServer

	node *Node
}

// Attach lets a signaling node speak for one peer until either side ends the stream. Queued events are still sent at the end.
func (s *service) Attach(stream control.Media_AttachServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	session, refused := s.node.attach(stream.Context(), first)
	if refused != nil {
		s.node.cfg.Metrics.Refused(reasonOf(refused.code))
		return stream.Send(refused.event())
	}
	written := make(chan error, 1)
	go func() {
		err := status.Error(codes.Internal, "the node broke while it sent")
		s.node.panics.Catch(session.room.log, "an event broke its sending: stream ended", func() {
			err = session.outbox.drain(stream.Send)
		}, "peer", string(session.peer.id))
		written <- err
	}()
	go session.read(stream)
	defer session.end()
	select {
	case err := <-written:
		return err
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	case <-session.outbox.ended:
	}
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case err := <-written:
		return err
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	case <-late.C:
		return status.Error(codes.ResourceExhausted, "the signaling node does not read this stream")
	}
}

// Watch sends heartbeats until the node ends: the stream's end is its death.
func (s *service) Watch(request *control.WatchRequest, stream control.Media_WatchServer) error {
	n := s.node
	n.log.Debug("signaling node watches", "signaling", request.GetSignalingNode(), "protocol", request.GetVersion())
	if request.GetSignalingNode() != "" {
		n.watchers.Add(1)
		defer n.watchers.Add(-1)
	}
	every := heartbeatEvery
	if n.standby != nil {
		every = heartbeatStandbyEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var seq uint64
	for {
		seq++
		heartbeat := &control.Heartbeat{Node: string(n.cfg.Node), Boot: string(n.cfg.Boot), Media: n.advertised(), Seq: seq, Version: control.Protocol, Capabilities: control.Capabilities()}
		if err := stream.Send(heartbeat); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-n.stopped:
			return nil
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// Rooms lists the open rooms with their people, and on request what their media does.
func (s *service) Rooms(ctx context.Context, request *control.RoomsRequest) (*control.RoomsReply, error) {
	n := s.node
	reply := &control.RoomsReply{Node: string(n.cfg.Node), Boot: string(n.cfg.Boot)}
	n.mu.Lock()
	rooms := make(map[*room]headroom.Egress, len(n.rooms))
	for r := range n.sending() {
		if request.GetRoom() == "" || request.GetRoom() == string(r.id) {
			rooms[r] = r.load.measured
		}
	}
	n.mu.Unlock()
	left := maxStatesTold
	for r, sent := range rooms {
		var unplaced map[string][]*control.Stream
		if request.GetMedia() {
			unplaced = map[string][]*control.Stream{}
		}
		held, err := r.held(ctx, request, unplaced)
		if err != nil {
			if ctx.Err() != nil {
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			// The room has closed meanwhile.
			continue
		}
		held.EgressBitsPerSecond = sent.BitsPerSecond
		if request.GetMedia() {
			left = tellMedia(r.media.States(), held.GetPeers(), unplaced, left)
		}
		reply.Rooms = append(reply.Rooms, held)
	}
	return reply, nil
}

// Holds says whether one room is open, or about to be.
func (s *service) Holds(ctx context.Context, request *control.HoldsRequest) (*control.HoldsReply, error) {
	n := s.node
	reply := &control.HoldsReply{Node: string(n.cfg.Node), Boot: string(n.cfg.Boot)}
	room := ring.RoomID(request.GetRoom())
	// This comes before the open rooms are looked at, because a room that opens may become open meanwhile.
	opening, err := n.owner.Opening(ctx, room)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	n.mu.Lock()
	r, open := n.rooms[room]
	n.mu.Unlock()
	if open {
		// The store may lack somebody, so the roster is written again.
		n.rosters.Touch(room)
		reply.Pin = control.PinProto(r.pin())
	} else if !opening.IsZero() {
		reply.Pin = control.PinProto(opening)
	}
	return reply, nil
}

// Outrank hands a room over to a higher pin.
func (s *service) Outrank(_ context.Context, request *control.OutrankRequest) (*control.OutrankReply, error) {
	higher, err := request.GetPin().Value()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("the pin is not usable: %v", err))
	}
	if request.GetRoom() == "" || len(request.GetRoom()) > maxNameBytes {
		return nil, status.Error(codes.InvalidArgument, "the request names no room")
	}
	return &control.OutrankReply{Held: s.node.fence(ring.RoomID(request.GetRoom()), higher, request.GetLive())}, nil
}

func (s *service) Drain(_ context.Context, request *control.DrainRequest) (*control.DrainReply, error) {
	n := s.node
	drained := n.DrainState().Draining
	switch boot := request.GetBoot(); {
	case boot != "" && boot != string(n.cfg.Boot):
		// The request is for a former process at this address.
	case request.GetUndrain():
		drained = n.Undrain()
	default:
		deadline := time.Duration(request.GetDeadlineMs()) * time.Millisecond
		if deadline > maxDrain {
			return nil, status.Errorf(codes.InvalidArgument, "a deadline of %v is too long: at most %v", deadline, maxDrain)
		}
		n.StartDrain(Drain{Deadline: deadline, Exit: request.GetExit()})
	}
	now := n.DrainState()
	return &control.DrainReply{
		Node: string(n.cfg.Node), Boot: string(n.cfg.Boot), Draining: now.Draining, Rooms: uint32(now.Rooms), Peers: uint32(now.Peers),
		WasDraining: drained,
	}, nil
}

func (s *service) Process(_ context.Context, request *control.ProcessRequest) (*control.ProcessReply, error) {
	if request.GetCollect() {
		// What is in pools survives one collection, and goes with the one of FreeOSMemory.
		runtime.GC()
		debug.FreeOSMemory()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return &control.ProcessReply{
		Node: string(s.node.cfg.Node), Boot: string(s.node.cfg.Boot),
		Goroutines: uint64(runtime.NumGoroutine()), HeapBytes: memory.HeapAlloc, Panics: s.node.panics.Count(),
	}, nil
}

// Reach gives a signaling node credentials for its checks of the media addresses, or takes their result.
func (s *service) Reach(_ context.Context, request *control.ReachRequest) (*control.ReachReply, error) {
	n := s.node
	silent := request.GetSilent()
	if name := request.GetSignaling(); name == "" || len(name) > maxNameBytes || len(silent) > maxReachSilent ||
		slices.ContainsFunc(silent, func(at string) bool { return len(at) > maxNameBytes }) {
		return nil, status.Error(codes.InvalidArgument, "the request names no signaling node, or too much")
	}
	if request.GetTried() {
		n.tried(request.GetSignaling(), strings.Join(silent, ", "))
		return &control.ReachReply{Boot: string(n.cfg.Boot)}, nil
	}
	credentials, err := n.tryable()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &control.ReachReply{Boot: string(n.cfg.Boot), Media: n.mediaSockets(), Ufrag: credentials.Ufrag, Password: credentials.Password}, nil
}

func (s *service) Moderate(ctx context.Context, request *control.ModerateRequest) (*control.ModerateReply, error) {
	_, source := sources.Of(request.GetSource())
	all := request.GetPeer() == "" && request.GetIdentity() == ""
	act := request.GetAct()
	switch {
	case request.GetRoom() == "" || request.GetPeer() != "" && request.GetIdentity() != "":
		return nil, status.Error(codes.InvalidArgument, "the request names a room, and a peer or an identity at most")
	case act <= control.Act_ACT_UNSPECIFIED || act > control.Act_ACT_UPDATE:
		return nil, status.Error(codes.InvalidArgument, "the act is not known")
	case all && act != control.Act_ACT_MUTE && act != control.Act_ACT_LOWER_HAND:
		return nil, status.Error(codes.InvalidArgument, "the act is for one person")
	case act == control.Act_ACT_UPDATE && request.GetUpdate() == nil:
		return nil, status.Error(codes.InvalidArgument, "the update is missing")
	case !source && (act == control.Act_ACT_MUTE || act == control.Act_ACT_ASK_UNMUTE):
		return nil, status.Error(codes.InvalidArgument, "the act is for a source")
	}
	reply := &control.ModerateReply{}
	ran, err := s.onLoop(ctx, request.GetRoom(), func(r *room) { r.acts.moderate(request, reply) })
	switch {
	case ran:
		return reply, nil
	case err == nil && request.GetByPeer() != "":
		// A moderator's room should be here. An act over REST asks all nodes, most of which do not have the room.
		return nil, control.NotOpen()
	default:
		return &control.ModerateReply{}, err
	}
}

// SendData sends a message to people of a room at all of its nodes.
func (s *service) SendData(ctx context.Context, request *control.Data) (*control.SendDataReply, error) {
	if request.GetRoom() == "" || len(request.GetPacket()) == 0 || len(request.GetPacket()) > dataBytes {
		return nil, status.Error(codes.InvalidArgument, "the request names a room, and has a packet of a client's size")
	}
	held, err := s.onLoop(ctx, request.GetRoom(), func(r *room) {
		r.messages.hear(request)
		r.messages.tell(request, nil)
	})
	return &control.SendDataReply{Held: held}, err
}

func (s *service) Remove(ctx context.Context, request *control.RemoveRequest) (*control.RemoveReply, error) {
	peer, identity := request.GetPeer(), request.GetIdentity()
	named := 0
	for _, one := range []bool{peer != "", identity != "", request.GetEverybody()} {
		if one {
			named++
		}
	}
	if request.GetRoom() == "" || named != 1 {
		return nil, status.Error(codes.InvalidArgument, "a removal names a room, and a peer, an identity or everybody")
	}
	reply := &control.RemoveReply{}
	ran, err := s.onLoop(ctx, request.GetRoom(), func(r *room) {
		if request.GetEverybody() {
			r.endCall(reply)
		} else {
			r.people.removeWhere(peer, identity, reply)
		}
	})
	if !ran {
		return &control.RemoveReply{}, err
	}
	return reply, nil
}

// onLoop is false if the room is not open here.
func (s *service) onLoop(ctx context.Context, room string, task func(*room)) (ran bool, err error) {
	s.node.mu.Lock()
	r, open := s.node.rooms[ring.RoomID(room)]
	s.node.mu.Unlock()
	if !open {
		return false, nil
	}
	if err := r.do(ctx, func() { r.becomeOwner(); task(r) }); err != nil {
		if ctx.Err() != nil {
			return false, status.FromContextError(ctx.Err()).Err()
		}
		// The room has closed meanwhile.
		return false, nil
	}
	return true, nil
}
