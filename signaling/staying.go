package signaling

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type stayingRoom struct {
	Room   ring.RoomID `json:"room"`
	Reason string      `json:"reason"`
}

// Stays notes why a room cannot leave a draining node, or "".
func (h *Hub) Stays(room ring.RoomID, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.stays = why
	}
}

func (h *Hub) staying(boot pin.BootID) []stayingRoom {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []stayingRoom{}
	for id, r := range h.byBoot[boot] {
		if r.stays != "" {
			list = append(list, stayingRoom{Room: id, Reason: r.stays})
		}
	}
	return list
}

// staying also asks the other signaling nodes about their clients' rooms. It returns the nodes that did not answer too.
func (s *Server) staying(ctx context.Context, boot pin.BootID) ([]stayingRoom, []ring.NodeID) {
	var others []cluster.Node
	for _, n := range s.parts.Views.View().Signaling {
		if n.ID != s.config.Node {
			others = append(others, n)
		}
	}
	list, unreachable := askEach(ctx, s, "staying", others, func(ctx context.Context, n cluster.Node) ([]stayingRoom, error) {
		client, err := s.parts.Pool.Moves(n.Control)
		if err != nil {
			return nil, err
		}
		reply, err := client.Staying(ctx, &control.StayingRequest{Boot: string(boot)})
		return each(reply.GetRooms(), func(r *control.StayingRoom) stayingRoom {
			return stayingRoom{Room: ring.RoomID(r.GetRoom()), Reason: r.GetReason()}
		}), err
	})
	list = append(s.hub.staying(boot), list...)
	slices.SortStableFunc(list, func(a, b stayingRoom) int { return cmp.Compare(a.Room, b.Room) })
	return slices.CompactFunc(list, func(a, b stayingRoom) bool { return a.Room == b.Room }), unreachable
}

// StayingRooms are those of this node's clients, for control.AnswerStaying.
func (s *Server) StayingRooms(boot pin.BootID) []*control.StayingRoom {
	return each(s.hub.staying(boot), func(r stayingRoom) *control.StayingRoom {
		return &control.StayingRoom{Room: string(r.Room), Reason: r.Reason}
	})
}
