package signaling

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// A session that has ended for good must not be resumed, by whoever has its token: after a leave, and after a
// removal. Both are noted in the store, beside the room's pin, for as long as a token could bring the person back. So they hold
// on every signaling node, after any node's death, and after the room has closed. While the store is away a resume is let in,
// because a running call does not need the store, and judged when the store answers again.

// Notes of a room.
const (
	noteEnded   = "ended/"   // and a peer: why its session is over
	noteRemoved = "removed/" // and an identity: until when its sessions had begun that are over, in Unix milliseconds

	whyLeft    = "left"
	whyRemoved = "removed"
)

const (
	// endingLife is as long as a resume token may be good, and what clocks differ by.
	endingLife = access.ResumeLife + time.Minute
	// askEndedLimit is what a resume waits for the store, beside its placement: the time of a placement.
	askEndedLimit = 300 * time.Millisecond
	// asksOfEndings at once leave the store's connections to placement.
	asksOfEndings = 16
	// noteLimit bounds one attempt to write a note, noteEvery is the pause before the next.
	noteLimit = 500 * time.Millisecond
	noteEvery = time.Second
	// waitingNotes wait for a store that is away; past it the next one is lost, and said in the log.
	waitingNotes = 4096
	// rewriteEvery and keptRemovals: the removals that were made here, so many at most, are written again and again, for a store that
	// lost its memory.
	rewriteEvery = 30 * time.Second
	keptRemovals = 10_000
)

var (
	// errLeft refuses to resume a session that its client ended.
	errLeft = errors.New("this session was ended by a leave")
	// errKicked ends a session whose person was removed from the room.
	errKicked = errors.New("somebody who runs this room removed this person")
)

// endedSessions are to be noted: sessions of a room that are over.
type endedSessions struct {
	room  ring.RoomID
	notes map[string]string
	until time.Time // no token is good for longer
}

// keptNotes are the removals that were made here.
type keptNotes struct {
	mu       sync.Mutex      // guards removals
	removals []endedSessions // the oldest first
}

// leaveOf is the note that a session's own client ended it.
func leaveOf(who access.Session, now time.Time) endedSessions {
	until := time.Unix(who.Until, 0).Add(endingLife - access.ResumeLife)
	if latest := now.Add(endingLife); latest.Before(until) {
		until = latest
	}
	return endedSessions{room: who.Room, notes: map[string]string{noteEnded + who.Peer: whyLeft}, until: until}
}

// removalFrom are the notes of a removal: the peer that was meant, the peers that were found, and, where an identity was meant, all that
// it began before, for it may have the token of a session that no node has any more.
func removalFrom(room ring.RoomID, identity, peer string, found []removedPeer, now time.Time) endedSessions {
	e := endedSessions{room: room, notes: make(map[string]string, len(found)+1), until: now.Add(endingLife)}
	if peer != "" {
		e.notes[noteEnded+peer] = whyRemoved
	}
	for _, p := range found {
		e.notes[noteEnded+p.Peer] = whyRemoved
	}
	if identity != "" {
		e.notes[noteRemoved+identity] = strconv.FormatInt(now.UnixMilli(), 10)
	}
	return e
}

// note writes to the store that sessions are over. If that fails it is tried again until it succeeds, in the background.
func (s *Server) note(ctx context.Context, e endedSessions) error {
	err := s.writeNote(ctx, e)
	if err == nil {
		return nil
	}
	select {
	case s.notes <- e:
		s.log.Debug("the end of sessions is not noted yet", "room", e.room, "error", err)
	default:
		s.log.Error("the end of sessions is not noted: too many wait for the store", "room", e.room, "waiting", waitingNotes, "error", err)
	}
	return err
}

func (s *Server) writeNote(ctx context.Context, e endedSessions) error {
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	return s.parts.Store.Note(ctx, e.room, e.notes, e.until.Sub(s.parts.Store.Now()))
}

// noteRemoval is note for a removal, which is written again as long as it counts.
func (s *Server) noteRemoval(ctx context.Context, e endedSessions) error {
	if len(e.notes) == 0 {
		return nil
	}
	s.kept.mu.Lock()
	s.kept.removals = append(s.kept.removals, e)
	if len(s.kept.removals) > keptRemovals {
		s.kept.removals = s.kept.removals[1:]
	}
	s.kept.mu.Unlock()
	return s.note(ctx, e)
}

// rewriteRemovals writes the removals of this node again. When the store fails, the rest waits for the next time.
func (s *Server) rewriteRemovals(ctx context.Context) {
	now := s.parts.Store.Now()
	s.kept.mu.Lock()
	s.kept.removals = slices.DeleteFunc(s.kept.removals, func(e endedSessions) bool { return !now.Before(e.until) })
	all := slices.Clone(s.kept.removals)
	s.kept.mu.Unlock()
	for _, e := range all {
		if s.writeNote(ctx, e) != nil {
			return
		}
	}
}

// writeNotes writes, until ctx ends, what could not be written at once, and what the store may have lost.
func (s *Server) writeNotes(ctx context.Context) {
	again := time.NewTicker(rewriteEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			s.rewriteRemovals(ctx)
		case <-ctx.Done():
			if lost := len(s.notes); lost > 0 {
				s.log.Warn("ends of sessions are not noted: this node stops, and the store did not answer", "notes", lost)
			}
			return
		case e := <-s.notes:
			for s.writeNote(ctx, e) != nil {
				select {
				case <-ctx.Done():
					return
				case <-time.After(noteEvery):
				}
			}
		}
	}
}

// ended asks the store whether a session is over for good. It returns errLeft, errKicked, nil for a session that may be
// resumed, or another error when the store could not say.
func (s *Server) ended(ctx context.Context, who access.Session) error {
	ctx, cancel := context.WithTimeout(ctx, askEndedLimit)
	defer cancel()
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	texts, err := s.parts.Store.Notes(ctx, who.Room, noteEnded+who.Peer, noteRemoved+who.Identity)
	if err != nil {
		return err
	}
	switch removed, err := strconv.ParseInt(texts[1], 10, 64); {
	case texts[0] == whyLeft:
		return errLeft
	case texts[0] != "": // Somebody wrote something about this session, and it was not that it goes on.
		return errKicked
	case err == nil && who.Began <= removed:
		return errKicked
	}
	return nil
}

// over reports whether an answer of ended is a verdict.
func over(err error) bool { return errors.Is(err, errLeft) || errors.Is(err, errKicked) }

// judge asks in the background whether this session is over, until the store answers.
func (s *session) judge(ctx context.Context) {
	s.unjudge()
	ctx, s.unjudge = context.WithCancel(ctx)
	s.workers.Go(func() {
		for tries := 0; ; tries++ {
			err := s.server.ended(ctx, s.who)
			if err == nil || ctx.Err() != nil {
				return
			}
			if over(err) {
				select {
				case s.verdicts <- err:
				case <-ctx.Done():
				}
				return
			}
			if !s.pause(ctx, tries) {
				return
			}
		}
	})
}

// expel ends a session that should not have been let in.
func (s *session) expel(verdict error) (ending, bool) {
	s.log.Info("session is over", "why", verdict)
	how, done := s.bye(codeOf(verdict))
	how.expelled = true
	return how, done
}
