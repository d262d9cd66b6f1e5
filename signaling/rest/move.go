package rest

import (
	"errors"
	"net/http"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// serveMove moves a room to the node that is named, or to the one that placement chooses.
func (a *API) serveMove(w http.ResponseWriter, r *http.Request) {
	room, err := roomOf(r, "/move")
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
	answer, err := a.deps.Moderation.Move(r.Context(), room, wanted.Node)
	if errors.Is(err, orchestrator.ErrNoPin) {
		err = fault.Sayf(wire.CodeUnknownRoom, "No room named %s is open; `holdfast rooms` lists those that are.", room)
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	a.ordered(r, events.Event{Kind: events.MoveOrdered, Room: room, To: wanted.Node})
	reply.JSON(w, http.StatusOK, answer)
}
