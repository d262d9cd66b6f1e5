package signaling

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// lostRoster has forgotten who is in the room: it lets everybody in from the line, and the placer finds no proof.
type lostRoster struct {
	doors

	lost  atomic.Bool
	asked atomic.Int32
}

func (l *lostRoster) CheckIn(ctx context.Context, rooms []waitlist.Asked) []waitlist.Checked {
	answers := l.doors.CheckIn(ctx, rooms)
	for i := range answers {
		for j := range answers[i].Places {
			if l.lost.Load() {
				answers[i].Roster, answers[i].Places[j] = "", waitlist.LetIn
			}
		}
	}
	return answers
}

func (l *lostRoster) Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	if l.lost.Load() {
		l.asked.Add(1)
		return pin.Pin{}, 0, waitlist.Answer{Outcome: waitlist.Admitted, Ticket: e.Ticket}, errNobody
	}
	return l.doors.Enter(ctx, room, p, why, e)
}

// Whom the line lets in without a roster goes on waiting until the placer says that nobody was forgotten.
func TestLetInByAStoreThatForgot(t *testing.T) {
	r := newCapped(t)
	forgot := &lostRoster{doors: r.placer.behind()}
	r.placer.mu.Lock()
	r.placer.doors = forgot
	r.placer.mu.Unlock()
	e := r.signalingNode(nil)
	r.show("ann")
	bob := e.asks("bob", 1, true)
	bob.waitsAt(1)
	forgot.lost.Store(true)
	testkit.Eventually(t, "the placer to be asked again and again", func() bool { return forgot.asked.Load() > 1 })
	if n := e.doors.Waiting(); n != 1 {
		t.Errorf("%d people wait, want bob", n)
	}
	forgot.lost.Store(false)
	r.show()
	hear[*wire.Joined](bob)
}
