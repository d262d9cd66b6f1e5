package rest

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
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// ModerationAnswer says to whom an act was done.
type ModerationAnswer struct {
	Done        []moderation.Moderated `json:"done"`
	Unreachable []ring.NodeID          `json:"unreachable"`
}

// serveModeration carries out a moderator's act for an application that runs the room.
func (a *API) serveModeration(w http.ResponseWriter, r *http.Request) {
	request, err := a.moderationOf(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	done, unreachable := a.deps.Moderation.ModerateEverywhere(r.Context(), request)
	answer := ModerationAnswer{Done: done, Unreachable: unreachable}
	if err := nobodyFound(len(done), unreachable); err != nil {
		reply.RefuseWith(w, err, func(refusal reply.Refusal) any {
			return struct {
				reply.Refusal
				ModerationAnswer
			}{refusal, answer}
		})
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

func (a *API) moderationOf(r *http.Request) (*control.ModerateRequest, error) {
	grant, whom, err := a.whomOf(r)
	if err != nil {
		return nil, err
	}
	act := wire.Act(chi.URLParam(r, "act"))
	source := wire.Source(cmp.Or(r.URL.Query().Get("source"), string(wire.SourceMicrophone)))
	all := whom.Peer == "" && whom.Identity == ""
	switch {
	case translate.ControlAct(act) == control.Act_ACT_UNSPECIFIED:
		return nil, fmt.Errorf("%w: the act is not mute, ask-unmute, lower-hand, grant or give-up", wire.ErrMalformed)
	case translate.ControlSource(source) == control.Source_SOURCE_UNSPECIFIED:
		return nil, fmt.Errorf("%w: source is not microphone, camera, screen or screen-audio", wire.ErrMalformed)
	case all && act != wire.ActMute && act != wire.ActLowerHand:
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom)
	}
	return &control.ModerateRequest{
		Room: string(whom.Room), Act: translate.ControlAct(act), Peer: whom.Peer, Identity: whom.Identity, Source: translate.ControlSource(source), By: access.ShownName(grant.Name),
	}, nil
}
