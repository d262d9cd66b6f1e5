package signaling

import (
	"context"
	"log/slog"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type silentPlacer struct{ Placer }

func (silentPlacer) Enter(context.Context, ring.RoomID, headroom.Room, waitlist.Entry) (pin.Pin, waitlist.Answer, error) {
	return pin.Pin{}, waitlist.Answer{}, orchestrator.ErrStoreUnavailable
}

// A store that has forgotten the line, and then does not answer, does not send anybody to its end.
func TestTicketOutlivesASilentStore(t *testing.T) {
	server := &Server{}
	server.parts.Placer = silentPlacer{}
	s := &session{server: server, log: slog.New(slog.DiscardHandler)}
	s.queue.wanted, s.queue.ticket = true, 42
	s.queue.place = waitlist.Place{Position: 1, Reason: waitlist.Full}
	s.queue.here = &waitlist.Member{}
	s.heard(t.Context(), waitlist.Word{Code: waitlist.Gone})
	if s.queue.ticket != 42 || s.queue.place.Position != 1 {
		t.Errorf("the ticket is %d, the place %+v", s.queue.ticket, s.queue.place)
	}
}
