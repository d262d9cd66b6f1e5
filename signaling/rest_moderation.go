package signaling

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type moderationAnswer struct {
	Done        []moderation.Moderated `json:"done"`
	Unreachable []ring.NodeID          `json:"unreachable"`
}

// serveModeration is a moderator's acts for who runs the room elsewhere.
func (s *Server) serveModeration(w http.ResponseWriter, r *http.Request) {
	request, err := s.moderationOf(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	done, unreachable := s.moderation.ModerateEverywhere(r.Context(), request)
	reply.JSON(w, statusOf(len(done), unreachable), moderationAnswer{Done: done, Unreachable: unreachable})
}

func (s *Server) moderationOf(r *http.Request) (*control.ModerateRequest, error) {
	grant, whom, err := s.whomOf(r)
	if err != nil {
		return nil, err
	}
	act := wire.Act(chi.URLParam(r, "act"))
	source := wire.Source(cmp.Or(r.URL.Query().Get("source"), string(wire.SourceMicrophone)))
	all := whom.Peer == "" && whom.Identity == ""
	switch {
	case controlAct(act) == control.Act_ACT_UNSPECIFIED:
		return nil, fmt.Errorf("%w: the act is not mute, ask-unmute, lower-hand, grant or give-up", wire.ErrMalformed)
	case controlSource(source) == control.Source_SOURCE_UNSPECIFIED:
		return nil, fmt.Errorf("%w: source is not microphone, camera, screen or screen-audio", wire.ErrMalformed)
	case all && act != wire.ActMute && act != wire.ActLowerHand:
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	return &control.ModerateRequest{
		Room: string(whom.Room), Act: controlAct(act), Peer: whom.Peer, Identity: whom.Identity, Source: controlSource(source), By: access.ShownName(grant.Name),
	}, nil
}
