package signaling

import (
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// All nodes are asked: the store's pin may be wrong.
func (s *Server) serveRemoval(w http.ResponseWriter, r *http.Request) {
	request, err := s.removalOf(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	answer := s.moderation.Remove(r.Context(), request)
	reply.JSON(w, statusOf(len(answer.Removed), answer.Unreachable), answer)
}

func (s *Server) removalOf(r *http.Request) (*control.RemoveRequest, error) {
	_, whom, err := s.whomOf(r)
	if err == nil && whom.Peer == "" && whom.Identity == "" {
		err = fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	if err != nil {
		return nil, err
	}
	return &control.RemoveRequest{Room: string(whom.Room), Peer: whom.Peer, Identity: whom.Identity}, nil
}

// serveUserRemoval ends a user's connections in no room, at every node. It is no ban.
func (s *Server) serveUserRemoval(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	if user == "" || len(user) > access.MaxIdentityBytes {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom))
		return
	}
	err := s.endings.RemoveUser(r.Context(), user)
	s.log.Info("a user's connections in no room are ended", "user", user, "recorded", err == nil)
	reply.JSON(w, http.StatusOK, map[string]any{"user": user, "recorded": err == nil})
}
