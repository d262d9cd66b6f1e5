package signaling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/hub"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A session waits when the store's script does not let it in. It is then in no room; its loop runs, and the node's list checks in for it.

const (
	checkInLimit = 2 * time.Second
	// Without headroom the first in line tries at this pace, and nobody else enters for twice as long.
	placeEvery    = 2 * time.Second
	placeEveryMax = 16 * time.Second
)

var errTurnedAway = fault.Coded(wire.CodeTurnedAway, "somebody who runs this room turned this person away")

// line is a session's way through the door of its room, and its place in the line before it. A room without a cap has no door. The session's
// loop owns it, but for what is atomic.
type line struct {
	placer Placer
	hub    *hub.Hub
	doors  *door.Doors
	store  Doors
	usual  int            // cap of rooms whose tokens name none; 0: no cap
	work   func(f func()) // beside the session's loop
	socket *socket
	log    *slog.Logger
	who    *access.Session // the session's own: a rename changes it

	resumes bool
	wanted  bool // the client would wait
	told    wire.Waiting
	ticket  int64
	place   waitlist.Place
	// settings are those of the door when it let the person in, or nothing.
	settings string
	here     *waitlist.Member // nil unless waiting
	words    chan waitlist.Word

	// Any goroutine may use the next three. passed: the door let the person in. unasked: the store did not answer a resume's question, so
	// only a media node that knows the person lets it in. waiting: the person stands in the line.
	passed, unasked, waiting atomic.Bool

	placeNext  time.Time // without headroom
	placePause time.Duration
}

func (l *line) waits() bool { return l.here != nil }

// mayWait: the person stands in line, or the cluster has no headroom.
func (l *line) mayWait(ctx context.Context, err error, expect headroom.Room) bool {
	if !l.wanted || l.resumes || l.who.Hidden {
		return false
	}
	if lacksHeadroom(err) {
		l.placePause = min(max(2*l.placePause, placeEvery), placeEveryMax)
		l.placeNext = time.Now().Add(l.placePause)
		_, err = l.pass(ctx, *l.who, expect, 2*l.placePause)
	}
	wait, stands := errors.AsType[*waitlist.WaitError](err)
	if !stands || wait.Answer.Outcome != waitlist.Waiting {
		return false
	}
	if !l.waits() {
		words := l.words
		tell := func(w waitlist.Word) {
			select { // the latest counts
			case <-words:
			default:
			}
			words <- w
		}
		l.here = &waitlist.Member{
			Room: l.who.Room, Identity: l.who.Identity, Cap: l.ownCap(), Usual: l.usual, Tell: tell,
		}
		l.waiting.Store(true)
		l.doors.Wait(l.here, l.place)
		l.log.Info("somebody waits", "identity", l.who.Identity, "position", l.place.Position, "reason", l.place.Reason)
	}
	l.tellPlace(l.place)
	return true
}

func lacksHeadroom(err error) bool {
	return err != nil && reply.Of(err).Code == wire.CodeNoCapacity && !isWait(err)
}

func isWait(err error) bool {
	_, is := errors.AsType[*waitlist.WaitError](err)
	return is
}

func (l *line) tellPlace(p waitlist.Place) {
	if p.Reason == waitlist.Settling {
		p.Reason = waitlist.Full
	}
	m := &wire.Waiting{Position: p.Position, Reason: string(p.Reason)}
	if p.Reason == waitlist.Full {
		m.EstimateMs = p.Pace.Estimate(p.Position).Milliseconds()
	}
	if m.Position != l.told.Position || m.Reason != l.told.Reason {
		l.told = *m
		l.socket.send(m)
	}
}

// heard takes a word of the line. enter: the door let the person in. away: somebody turned the person away.
func (l *line) heard(ctx context.Context, w waitlist.Word, expect headroom.Room) (enter, away bool) {
	switch {
	case !l.waits():
	case w.Code == waitlist.TurnedAway:
		l.quit(ctx, false)
		return false, true
	// Who is let in makes the reservation its own. Else the store forgot the line or who is in the room, or was away: the ticket
	// finds the place.
	case w.Code == waitlist.LetIn, w.Code == waitlist.Gone:
		_, err := l.pass(ctx, *l.who, expect, 0)
		if err == nil {
			l.quit(ctx, false)
			return true, false
		}
		l.mayWait(ctx, err, expect)
	case w.Code == 1 && w.Place.Reason == waitlist.NoCapacity && !time.Now().Before(l.placeNext):
		l.tryPlacing(ctx, expect)
		l.tellPlace(w.Place)
	default:
		l.place = w.Place
		l.tellPlace(w.Place)
	}
	return false, false
}

// Only the first in line tries: others would add load.
func (l *line) tryPlacing(ctx context.Context, expect headroom.Room) {
	limited, cancel := context.WithTimeout(ctx, hub.AskLimit)
	defer cancel()
	_, err := throughDoor(l.hub.Place(limited, l.who.Room, expect))
	switch {
	case err == nil:
		l.doors.Do(limited, l.who.Room, waitlist.Order{Deed: waitlist.Open})
	case lacksHeadroom(err):
		l.mayWait(limited, err, expect)
	default:
		l.placeNext = time.Now().Add(placeEvery)
	}
}

// quit gives up a leaver's place, and else keeps it for a while.
func (l *line) quit(ctx context.Context, leaves bool) {
	if !l.waits() {
		return
	}
	last := l.doors.Unwait(l.here)
	l.waiting.Store(false)
	l.here, l.told = nil, wire.Waiting{}
	select {
	case <-l.words:
	default:
	}
	if leaves && last {
		detached := context.WithoutCancel(ctx)
		l.work(func() {
			l.doors.Do(detached, l.who.Room, waitlist.Order{Deed: waitlist.Quit, Identity: l.who.Identity})
		})
	}
}

// keepPlace precedes a leave by a person who may come back. It returns false if the place is not kept: then a Leave would give it
// away, while the media node keeps for its grace time whoever only goes silent.
func (l *line) keepPlace(ctx context.Context, m *wire.Leave) bool {
	if !m.Back || !l.passed.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, checkInLimit)
	defer cancel()
	// A store that forgot who is in the room answers, and keeps nothing.
	door, err := l.store.Door(ctx, l.who.Room, waitlist.Order{Deed: waitlist.Keep, Identity: l.who.Identity})
	return err == nil && door.Done
}

func (l *line) ownCap() int {
	if l.who.MaxParticipants > 0 {
		return l.who.MaxParticipants
	}
	return waitlist.NoCap
}

func (l *line) knowsNoCap() bool {
	return l.who.MaxParticipants <= 0 && l.usual <= 0
}

// enter returns the pin of the room once its door lets the person in. Rooms without a cap and hidden people need no door.
func (l *line) enter(ctx context.Context, expect headroom.Room) (pin.Pin, error) {
	if l.passed.Load() || l.who.Hidden || l.knowsNoCap() {
		p, err := l.hub.Place(ctx, l.who.Room, expect)
		if !errors.Is(err, waitlist.ErrDoor) {
			return p, err
		}
		if l.passed.Load() || l.who.Hidden {
			return p, nil
		}
	}
	p, err := l.pass(ctx, *l.who, expect, 0)
	if l.resumes && errors.Is(err, orchestrator.ErrStoreUnavailable) {
		l.unasked.Store(true)
		return throughDoor(l.hub.Place(ctx, l.who.Room, expect))
	}
	return p, err
}

// throughDoor is for who is in the room.
func throughDoor(p pin.Pin, err error) (pin.Pin, error) {
	if errors.Is(err, waitlist.ErrDoor) {
		return p, nil
	}
	return p, err
}

// pass asks the door. hold keeps everybody out for that time.
// pass asks the door for who. The one caller beside the session's loop is an attach that a media node refused because it does not know the
// person: the session is then in its room, so nobody else uses ticket and place.
func (l *line) pass(ctx context.Context, who access.Session, expect headroom.Room, hold time.Duration) (pin.Pin, error) {
	limited, cancel := context.WithTimeout(ctx, hub.AskLimit)
	defer cancel()
	p, answer, err := l.placer.Enter(limited, who.Room, expect, waitlist.Entry{
		Identity: who.Identity, Peer: who.Peer, Name: who.Name, Cap: l.ownCap(), Usual: l.usual, Host: who.CanModerate, Wait: l.wanted && !l.resumes,
		Ticket: l.ticket, Hold: hold,
	})
	// A store that does not answer takes nobody's place in the line.
	if _, waits := errors.AsType[*waitlist.WaitError](err); waits || answer.Outcome != waitlist.Refused {
		l.ticket, l.place = answer.Ticket, answer.Place
	}
	l.passed.Store(err == nil)
	if err == nil {
		l.unasked.Store(false)
		l.settings = answer.Settings
	}
	if answer.Owing != "" && answer.Outcome == waitlist.Refused {
		detached := context.WithoutCancel(ctx)
		l.work(func() { l.doors.AskOwner(detached, waitlist.Owed{Room: who.Room, Pin: answer.Owing}) })
	}
	if answer.Outcome == waitlist.Admitted && errors.Is(err, orchestrator.ErrStoreUnavailable) {
		detached := context.WithoutCancel(ctx)
		l.work(func() {
			l.doors.Do(detached, who.Room, waitlist.Order{Deed: waitlist.Release, Identity: who.Identity, Peer: who.Peer})
		})
	}
	wait, refused := errors.AsType[*waitlist.WaitError](err)
	switch {
	case refused && wait.Answer.Outcome == waitlist.Refused && wait.Answer.Place.Reason == waitlist.Settling:
		return pin.Pin{}, fmt.Errorf("%w: the door of the room is settling", orchestrator.ErrStoreUnavailable)
	case refused && l.resumes:
		return pin.Pin{}, errResumeExpired.Over(err)
	}
	return p, err
}
