package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const moveBytes = 1 << 10

// serveMove moves a room to the node that is named, or to the one that placement chooses.
func (a *API) serveMove(w http.ResponseWriter, r *http.Request) {
	room, err := roomOf(r, "/move")
	var wanted struct {
		Node ring.NodeID `json:"node"`
	}
	if err == nil {
		decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, moveBytes))
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(&wanted); errors.Is(err, io.EOF) {
			err = nil
		} else if err != nil {
			err = fmt.Errorf("%w: the body is not {node?}: %w", wire.ErrMalformed, err)
		}
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
	reply.JSON(w, http.StatusOK, answer)
}
