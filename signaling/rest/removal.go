package rest

import (
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// serveRemoval asks all nodes, because the store's pin may be wrong.
func (a *API) serveRemoval(w http.ResponseWriter, r *http.Request) {
	request, err := a.removalOf(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	answer := a.deps.Moderation.Remove(r.Context(), request)
	answerRemoval(w, answer)
}

func answerRemoval(w http.ResponseWriter, answer moderation.Removal) {
	if err := nobodyFound(len(answer.Removed), answer.Unreachable); err != nil {
		reply.RefuseWith(w, err, func(refusal reply.Refusal) any {
			return struct {
				reply.Refusal
				moderation.Removal
			}{refusal, answer}
		})
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

func (a *API) removalOf(r *http.Request) (*control.RemoveRequest, error) {
	_, whom, err := a.whomOf(r)
	if err == nil && whom.Peer == "" && whom.Identity == "" {
		err = fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom)
	}
	if err != nil {
		return nil, err
	}
	return &control.RemoveRequest{Room: string(whom.Room), Peer: whom.Peer, Identity: whom.Identity}, nil
}

// serveUserRemoval ends a user's connections in no room, at every node. It is no ban.
func (a *API) serveUserRemoval(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	if user == "" || len(user) > access.MaxIdentityBytes {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom))
		return
	}
	err := a.deps.Endings.RemoveUser(r.Context(), user)
	a.deps.Log.Info("a user's connections in no room are ended", "user", user, "recorded", err == nil)
	reply.JSON(w, http.StatusOK, map[string]any{"user": user, "recorded": err == nil})
}
