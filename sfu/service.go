package sfu

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Silence is missing heartbeats (package failover); the stream's end is a death.
	heartbeatEvery = 200 * time.Millisecond
	// How long a stream's end waits until queued events are read.
	lastWords = 2 * time.Second
)

// Register adds the control service, which needs Run.
func (n *Node) Register(server *grpc.Server) {
	control.RegisterMediaServer(server, &service{node: n})
}

// service is control.Media.
type service struct {
	control.UnimplementedMediaServer

	node *Node
}

func (s *service) Attach(stream control.Media_AttachServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	session, refused := s.node.attach(stream.Context(), first)
	if refused != nil {
		return stream.Send(refused.event())
	}
	written := make(chan error, 1)
	go func() {
		var err error
		if caught := panics.Catch(func() { err = session.outbox.drain(stream.Send) }); caught != nil {
			s.node.panics.Report(session.room.log, caught, "an event broke its sending: stream ended", "peer", string(session.peer.id))
			err = status.Error(codes.Internal, "the node broke while it sent")
		}
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

func (s *session) read(stream control.Media_AttachServer) {
	defer s.end()
	defer func() {
		if caught := panics.Of(recover()); caught != nil {
			s.room.node.panics.Report(s.room.log, caught, "a message broke its reading: stream ended", "peer", string(s.peer.id))
			s.outbox.end(brokeRefusal().event())
		}
	}()
	for {
		message, err := stream.Recv()
		if err != nil || !s.handle(stream.Context(), message) {
			return
		}
	}
}

func (s *service) Watch(request *control.WatchRequest, stream control.Media_WatchServer) error {
	n := s.node
	n.log.Debug("signaling node watches", "signaling", request.GetSignalingNode(), "protocol", request.GetVersion())
	if request.GetSignalingNode() != "" {
		n.watchers.Add(1)
		defer n.watchers.Add(-1)
	}
	tick := time.NewTicker(heartbeatEvery)
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

func (s *service) Rooms(ctx context.Context, request *control.RoomsRequest) (*control.RoomsReply, error) {
	n := s.node
	reply := &control.RoomsReply{Node: string(n.cfg.Node), Boot: string(n.cfg.Boot)}
	n.mu.Lock()
	rooms := make(map[*room]headroom.Egress, len(n.rooms))
	for _, r := range n.rooms {
		rooms[r] = r.measured
	}
	n.mu.Unlock()
	left := maxStatesTold
	for r, sent := range rooms {
		var unplaced map[string][]*control.Stream
		if request.GetMedia() {
			unplaced = map[string][]*control.Stream{}
		}
		held, err := r.held(ctx, unplaced)
		if err != nil {
			if ctx.Err() != nil {
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			continue // closed since
		}
		held.EgressBitsPerSecond = sent.BitsPerSecond
		if request.GetMedia() {
			left = r.tellMedia(held.GetPeers(), unplaced, left)
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
	opening, err := n.owner.Opening(ctx, room) // before looking at open rooms: it may become one
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	n.mu.Lock()
	r, open := n.rooms[room]
	n.mu.Unlock()
	if open {
		n.rosters.Touch(room) // the store may lack somebody
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
