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
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

type silentPlacer struct{ Placer }

func (silentPlacer) Enter(context.Context, ring.RoomID, headroom.Room, waitlist.Entry) (pin.Pin, waitlist.Answer, error) {
	return pin.Pin{}, waitlist.Answer{}, orchestrator.ErrStoreUnavailable
}

// A store that has forgotten the line, and then does not answer, does not send anybody to its end.
func TestTicketOutlivesASilentStore(t *testing.T) {
	l := &line{placer: silentPlacer{}, who: &access.Session{}, log: slog.New(slog.DiscardHandler)}
	l.wanted, l.ticket = true, 42
	l.place = waitlist.Place{Position: 1, Reason: waitlist.Full}
	l.here = &waitlist.Member{}
	l.heard(t.Context(), waitlist.Word{Code: waitlist.Gone}, headroom.Room{})
	if l.ticket != 42 || l.place.Position != 1 {
		t.Errorf("the ticket is %d, the place %+v", l.ticket, l.place)
	}
}
