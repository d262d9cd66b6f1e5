package sfu

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Past maxRemoved people are still removed, but may resume.
const maxRemoved = 1000

func (s *service) Remove(ctx context.Context, request *control.RemoveRequest) (*control.RemoveReply, error) {
	peer, identity := request.GetPeer(), request.GetIdentity()
	if request.GetRoom() == "" || (peer == "") == (identity == "") {
		return nil, status.Error(codes.InvalidArgument, "a removal names a room, and either a peer or an identity")
	}
	reply := &control.RemoveReply{}
	ran, err := s.onLoop(ctx, request.GetRoom(), func(r *room) { reply.Removed = r.removeWhere(peer, identity) })
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
	if err := r.do(ctx, func() { task(r) }); err != nil {
		if ctx.Err() != nil {
			return false, status.FromContextError(ctx.Err()).Err()
		}
		return false, nil // closed since
	}
	return true, nil
}

// removeWhere also removes who is only expected, and refuses them later.
func (r *room) removeWhere(peer, identity string) []string {
	var found []string
	for id, p := range r.peers {
		if string(id) != peer && (identity == "" || p.entry.GetIdentity() != identity) {
			continue
		}
		if len(r.removed) < maxRemoved {
			r.removed[id] = true
		}
		if p.outbox != nil {
			p.outbox.end(r.event(removedRefusal().event()))
		}
		r.remove(p, "removed by an operator")
		r.log.Info("peer removed by an operator", "peer", string(id), "identity", p.entry.GetIdentity())
		found = append(found, string(id))
	}
	return found
}

func removedRefusal() *refusal {
	return refuse(control.Refusal_REFUSAL_REMOVED, "somebody who runs the room removed this peer")
}

func (r *room) wasRemoved(id string) bool { return r.removed[forward.PeerID(id)] }
