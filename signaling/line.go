package signaling

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/signaling/hub"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A session waits when the store's script does not let it in. It is then in no room; its loop runs, and the node's list checks in for it.

const (
	checkInLimit = 2 * time.Second
	// Without headroom the first in line tries at this pace, and nobody else enters for twice as long.
	placeEvery    = 2 * time.Second
	placeEveryMax = 16 * time.Second
)

var errTurnedAway = errors.New("somebody who runs this room turned this person away")

// queue is a session's part in the line.
type queue struct {
	wanted  bool // the client would wait
	passed  bool // the door let the person in
	unasked bool // a resume whose question the store did not answer: only a media node that knows the person lets it in
	told    wire.Waiting
	ticket  int64
	place   waitlist.Place
	here    *waitlist.Member // nil unless waiting
	words   chan waitlist.Word

	placeNext  time.Time // without headroom
	placePause time.Duration
}

func (s *session) waits() bool { return s.queue.here != nil }

// mayWait: the person stands in line, or the cluster has no headroom.
func (s *session) mayWait(ctx context.Context, err error) bool {
	if !s.queue.wanted || s.resumes || s.who.Hidden {
		return false
	}
	if lacksHeadroom(err) {
		s.queue.placePause = min(max(2*s.queue.placePause, placeEvery), placeEveryMax)
		s.queue.placeNext = time.Now().Add(s.queue.placePause)
		_, err = s.pass(ctx, s.expect(), 2*s.queue.placePause)
	}
	wait, stands := errors.AsType[*waitlist.WaitError](err)
	if !stands || wait.Answer.Outcome != waitlist.Waiting {
		return false
	}
	if !s.waits() {
		words := s.queue.words
		tell := func(w waitlist.Word) {
			select { // the latest counts
			case <-words:
			default:
			}
			words <- w
		}
		s.queue.here = &waitlist.Member{
			Room: s.who.Room, Identity: s.who.Identity, Cap: s.ownCap(), Usual: s.server.config.MaxParticipants, Tell: tell,
		}
		s.waiting.Store(true)
		s.server.doors.Wait(s.queue.here, s.queue.place)
		s.log.Info("somebody waits", "identity", s.who.Identity, "position", s.queue.place.Position, "reason", s.queue.place.Reason)
	}
	s.tellPlace(s.queue.place)
	return true
}

func lacksHeadroom(err error) bool {
	return err != nil && codeOf(err) == wire.CodeNoCapacity && !isWait(err)
}

func isWait(err error) bool {
	_, is := errors.AsType[*waitlist.WaitError](err)
	return is
}

func (s *session) tellPlace(p waitlist.Place) {
	if p.Reason == waitlist.Settling {
		p.Reason = waitlist.Full
	}
	m := &wire.Waiting{Position: p.Position, Reason: string(p.Reason)}
	if p.Reason == waitlist.Full {
		m.EstimateMs = p.Pace.Estimate(p.Position).Milliseconds()
	}
	if m.Position != s.queue.told.Position || m.Reason != s.queue.told.Reason {
		s.queue.told = *m
		s.socket.send(m)
	}
}

func (s *session) heard(ctx context.Context, w waitlist.Word) (ending, bool) {
	switch {
	case !s.waits():
	case w.Code == waitlist.TurnedAway:
		s.quit(ctx, false)
		return s.bye(errTurnedAway)
	// Who is let in makes the reservation its own. Else the store forgot the line or who is in the room, or was away: the ticket
	// finds the place.
	case w.Code == waitlist.LetIn, w.Code == waitlist.Gone:
		_, err := s.pass(ctx, s.expect(), 0)
		if err == nil {
			return s.enterAfterWaiting(ctx)
		}
		s.mayWait(ctx, err)
	case w.Code == 1 && w.Place.Reason == waitlist.NoCapacity && !time.Now().Before(s.queue.placeNext):
		s.tryPlacing(ctx)
		s.tellPlace(w.Place)
	default:
		s.queue.place = w.Place
		s.tellPlace(w.Place)
	}
	return ending{}, false
}

// Only the first in line tries: others would add load.
func (s *session) tryPlacing(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, hub.AskLimit)
	defer cancel()
	_, err := throughDoor(s.server.hub.Place(limited, s.who.Room, s.expect()))
	switch {
	case err == nil:
		s.server.doors.Do(limited, s.who.Room, waitlist.Order{Deed: waitlist.Open})
	case lacksHeadroom(err):
		s.mayWait(limited, err)
	default:
		s.queue.placeNext = time.Now().Add(placeEvery)
	}
}

func (s *session) enterAfterWaiting(ctx context.Context) (ending, bool) {
	s.quit(ctx, false)
	if err := s.enterRoom(ctx, 1); err != nil && !s.mayWait(ctx, err) {
		return s.refuse(err), true
	}
	return ending{}, false
}

// quit gives up a leaver's place, and else keeps it for a while.
func (s *session) quit(ctx context.Context, leaves bool) {
	if !s.waits() {
		return
	}
	last := s.server.doors.Unwait(s.queue.here)
	s.waiting.Store(false)
	s.queue.here, s.queue.told = nil, wire.Waiting{}
	select {
	case <-s.queue.words:
	default:
	}
	if leaves && last {
		detached := context.WithoutCancel(ctx)
		s.work(func() {
			s.server.doors.Do(detached, s.who.Room, waitlist.Order{Deed: waitlist.Quit, Identity: s.who.Identity})
		})
	}
}

// keepPlace precedes a leave by a person who may come back. It returns false if the place is not kept: then a Leave would give it
// away, while the media node keeps for its grace time whoever only goes silent.
func (s *session) keepPlace(ctx context.Context, m *wire.Leave) bool {
	if !m.Back || !s.queue.passed {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, checkInLimit)
	defer cancel()
	// A store that forgot who is in the room answers, and keeps nothing.
	door, err := s.server.parts.Doors.Door(ctx, s.who.Room, waitlist.Order{Deed: waitlist.Keep, Identity: s.who.Identity})
	return err == nil && door.Done
}
