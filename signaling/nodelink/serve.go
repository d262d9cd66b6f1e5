package nodelink

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
)

func sizeOf(frame *control.MessageFrame) int { return proto.Size(frame) }

type service struct {
	control.UnimplementedMessagesServer

	links *Links
}

// Register is for control.Server.
func (l *Links) Register(server *grpc.Server) {
	control.RegisterMessagesServer(server, &service{links: l})
}

// Exchange takes another node's frames.
func (s *service) Exchange(stream grpc.ClientStreamingServer[control.MessageBatch, control.MessagesEnd]) error {
	first, err := stream.Recv()
	if err != nil {
		return fmt.Errorf("read the first batch: %w", err)
	}
	from, err := decodeRun(first.GetFrom())
	to, also := decodeRun(first.GetTo())
	if err = errors.Join(err, also); err != nil {
		return s.links.refuse(err, "unknown")
	}
	if to != s.links.self {
		return status.Errorf(codes.FailedPrecondition, "this is %s, boot %s", s.links.self.ID, s.links.self.Boot)
	}
	for batch := first; ; {
		if n := len(batch.GetFrames()); n > maxFrames {
			return s.links.refuse(fmt.Errorf("%w: %d frames", errMalformed, n), string(from.ID))
		}
		for _, in := range batch.GetFrames() {
			frame, err := decode(in)
			if errors.Is(err, errUnknownKind) {
				s.links.passOver(err, string(from.ID))
				continue
			}
			if err != nil {
				return s.links.refuse(err, string(from.ID))
			}
			s.links.Node.Handle(from, frame)
		}
		if batch, err = stream.Recv(); errors.Is(err, io.EOF) {
			return stream.SendAndClose(&control.MessagesEnd{})
		} else if err != nil {
			return fmt.Errorf("read a batch of %s: %w", from.ID, err)
		}
	}
}

func (l *Links) passOver(err error, from string) {
	if unlogged, ok := l.faults.Next(); ok {
		l.log.Info("frames of direct messages passed over: that node is newer", "node", from, "error", err, "unlogged", unlogged)
	}
}

// refuse counts a frame that no node of ours says, and ends its stream.
func (l *Links) refuse(err error, from string) error {
	l.malformed.Add(1)
	if unlogged, ok := l.faults.Next(); ok {
		l.log.Warn("frame of direct messages refused: is every node of this cluster a Holdfast of about this version?", "node", from, "error", err, "unlogged", unlogged)
	}
	return status.Error(codes.InvalidArgument, err.Error())
}
