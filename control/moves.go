package control

import (
	"context"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/pin"
)

type moves struct {
	UnimplementedMovesServer

	staying func(pin.BootID) []*StayingRoom
}

// AnswerStaying registers staying, which returns the rooms that cannot leave a draining node.
func AnswerStaying(staying func(pin.BootID) []*StayingRoom) func(*grpc.Server) {
	return func(s *grpc.Server) { RegisterMovesServer(s, &moves{staying: staying}) }
}

func (m *moves) Staying(_ context.Context, request *StayingRequest) (*StayingReply, error) {
	return &StayingReply{Rooms: m.staying(pin.BootID(request.GetBoot()))}, nil
}
