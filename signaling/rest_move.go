package signaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const moveBytes = 1 << 10

// Codes of ordered moves.
const (
	codeUnknownRoom wire.Code = "unknown_room"
	codeMoveRefused wire.Code = "move_refused"
)

// serveMove moves a room to the named node, or the placer's choice.
func (s *Server) serveMove(w http.ResponseWriter, r *http.Request) {
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
		writeFault(w, err)
		return
	}
	answer, err := s.moderation.Move(r.Context(), room, wanted.Node)
	switch target := new(orchestrator.TargetError); {
	case err == nil:
		writeJSON(w, http.StatusOK, answer)
	case errors.Is(err, orchestrator.ErrNoPin):
		writeJSON(w, http.StatusNotFound, restFault{Code: codeUnknownRoom, Message: fmt.Sprintf("No room named %s is open; `holdfast rooms` lists those that are.", room)})
	case errors.As(err, &target):
		writeJSON(w, http.StatusConflict, restFault{Code: codeMoveRefused, Message: sentenceOf(target) + " Name another node, or none; `holdfast nodes` lists them."})
	default:
		writeFault(w, err)
	}
}
