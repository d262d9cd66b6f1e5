package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
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
	if len(answer.Removed) > 0 {
		a.ordered(r, events.Event{Kind: events.PersonRemoved, Room: ring.RoomID(request.GetRoom())})
	}
	answerRemoval(w, answer)
}

func answerRemoval(w http.ResponseWriter, answer moderation.Removal) {
	if err := nobodyFound(len(answer.Removed), answer.Unreachable); err != nil {
		refuseRemoval(w, err, answer)
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

func refuseRemoval(w http.ResponseWriter, err error, answer moderation.Removal) {
	reply.RefuseWith(w, err, func(refusal reply.Refusal) any {
		return struct {
			reply.Refusal
			moderation.Removal
		}{refusal, answer}
	})
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

// serveCallEnd ends a room's call for everybody.
func (a *API) serveCallEnd(w http.ResponseWriter, r *http.Request) {
	grant, err := a.grantOf(r)
	var room ring.RoomID
	if err == nil {
		room, err = roomOf(r, "")
	}
	if err == nil {
		err = a.mayAsk(grant, room)
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	answer, open := a.deps.Moderation.EndCall(r.Context(), room)
	switch {
	case len(answer.Removed) > 0 || open == nil && len(answer.Unreachable) == 0:
		a.ordered(r, events.Event{Kind: events.CallEnded, Room: room})
		reply.JSON(w, http.StatusOK, answer)
	case len(answer.Unreachable) > 0:
		refuseRemoval(w, nobodyFound(0, answer.Unreachable), answer)
	case errors.Is(open, orchestrator.ErrNoPin):
		refuseRemoval(w, fault.Sayf(wire.CodeUnknownRoom, "No room named %s is open; `holdfast rooms` lists those that are.", room), answer)
	default:
		refuseRemoval(w, open, answer)
	}
}

// serveUserRemoval ends a user's connections in no room, at every node. It is no ban.
func (a *API) serveUserRemoval(w http.ResponseWriter, r *http.Request) {
	user := access.Identity(r.URL.Query().Get("user"))
	if user == "" || len(user) > access.MaxIdentityBytes {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom))
		return
	}
	err := a.deps.Endings.RemoveUser(r.Context(), user)
	a.deps.Log.Info("a user's connections in no room are ended", "user", user, "recorded", err == nil)
	reply.JSON(w, http.StatusOK, map[string]any{"user": user, "recorded": err == nil})
}
