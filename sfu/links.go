package sfu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
)

// links implements control.Links for a node.
type links struct {
	control.UnimplementedLinksServer

	node *Node
}

// linkMedia carries the media of one room between two nodes. Package cascade says what its methods do.
type linkMedia interface {
	Run(ctx context.Context, say func(*control.LinkMessage) error) error
	Take(message *control.LinkMessage)
	Figures() (sent, received *control.LinkFigures)
}

// joinTrunk has the media of a link go over the trunk with a node.
func (n *Node) joinTrunk(ctx context.Context, peer cascade.Peer, cfg cascade.LinkConfig) (linkMedia, error) {
	trunk, err := n.trunks.With(ctx, peer)
	if err != nil {
		return nil, fmt.Errorf("join a media node: %w", err)
	}
	cfg.Trunk = trunk
	return cascade.NewLink(cfg), nil
}

// Trunk opens this node's end of a trunk with the media node that asks.
func (l *links) Trunk(ctx context.Context, request *control.TrunkRequest) (*control.TrunkReply, error) {
	reply, err := l.node.trunks.Answer(ctx, request)
	switch {
	case errors.Is(err, cascade.ErrOtherBoot):
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	case err != nil:
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return reply, nil
}

// Link serves a room's owner, for which this node is a branch from the first message on.
func (l *links) Link(stream control.Links_LinkServer) error {
	n := l.node
	told, err := receiveAppointment(stream)
	if err != nil {
		return err
	}
	owner, err := told[0].GetPin().Value()
	if err != nil || told[0].GetRoom() == "" || len(told[0].GetRoom()) > maxNameBytes || owner.Node == n.cfg.Node {
		return status.Error(codes.InvalidArgument, "the appointment has no usable pin or room")
	}
	// A node that owned the room until a failover, and has not heard of it yet, has no second room beside its branch.
	n.fence(ring.RoomID(told[0].GetRoom()), owner, false)
	r, refused := n.branch(stream.Context(), ring.RoomID(told[0].GetRoom()), owner, told[0].GetRun())
	if refused != nil {
		return stream.Send(&control.LinkMessage{Message: &control.LinkMessage_Appointed{Appointed: &control.Appointed{Refused: refused.event().GetRefused()}}})
	}
	there := cascade.Peer{Node: owner.Node, Boot: owner.Boot, Control: owner.Control}
	media, err := n.join(stream.Context(), there, cascade.LinkConfig{Room: r.media, Batch: r.parts[0], Log: r.log})
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	s := n.newLinkStream(media, &r.current, r.log)
	if err := r.do(stream.Context(), func() { refused = r.branch.begin(s, owner, told) }); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if refused != nil {
		return stream.Send(&control.LinkMessage{Message: &control.LinkMessage_Appointed{Appointed: &control.Appointed{Refused: refused.event().GetRefused()}}})
	}
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	var released atomic.Bool
	receive := func() (*control.LinkMessage, error) {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			// It is noted before anything else ends because of it.
			released.Store(true)
		}
		return message, err
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_ = s.serve(ctx, receive, func(m *control.LinkMessage) {
			if m.GetLayers() != nil {
				media.Take(m)
				return
			}
			r.branch.hear(s, m)
		})
	}()
	go func() {
		if s.write(stream.Send) != nil {
			end()
		}
	}()
	select {
	case <-heard:
	case <-ctx.Done():
	case <-r.done:
	}
	s.end()
	r.post(func() { r.branch.unlinked(s, released.Load()) })
	return nil
}

// receiveAppointment reads all parts.
func receiveAppointment(stream control.Links_LinkServer) ([]*control.Appoint, error) {
	var told []*control.Appoint
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		part := message.GetAppoint()
		if part == nil {
			return nil, status.Error(codes.InvalidArgument, "the first message of a link must be an Appoint")
		}
		if told = append(told, part); !part.GetMore() {
			return told, nil
		}
		if len(told) > mostBranches {
			return nil, status.Error(codes.InvalidArgument, "the appointment has too many parts")
		}
	}
}
