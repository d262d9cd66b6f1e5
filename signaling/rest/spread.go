package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// serveSpread has a media node carry some of a room's people beside the owner.
func (a *API) serveSpread(w http.ResponseWriter, r *http.Request) {
	serveSpreading(w, r, "/spread", a.deps.Moderation.Spread)
}

// serveGather ends one branch of a room, or all of them.
func (a *API) serveGather(w http.ResponseWriter, r *http.Request) {
	serveSpreading(w, r, "/gather", a.deps.Moderation.Gather)
}

func serveSpreading(
	w http.ResponseWriter, r *http.Request, suffix string, order func(context.Context, ring.RoomID, ring.NodeID) (moderation.Spread, error),
) {
	room, err := roomOf(r, suffix)
	var wanted struct {
		Node ring.NodeID `json:"node"`
	}
	if err == nil {
		err = readBody(r, maxBodyBytes, "{node?}", &wanted)
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	answer, err := order(r.Context(), room, wanted.Node)
	if errors.Is(err, orchestrator.ErrNoPin) {
		err = fault.Sayf(wire.CodeUnknownRoom, "No room named %s is open; `holdfast rooms` lists those that are.", room)
	}
	if refused, ok := errors.AsType[*moderation.SpreadError](err); ok {
		err = fault.New(wire.CodeMoveRefused, refused.Error(), "`holdfast nodes` lists the nodes, and `holdfast explain` shows where the room is.")
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}
