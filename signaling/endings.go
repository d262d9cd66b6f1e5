package signaling

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// Final endings (leaves, removals) stand in the store while a token could bring the person back. Without the store a
// resume is let in and judged later: running calls need no store.

const (
	noteEnded   = "ended/"   // and a peer
	noteRemoved = "removed/" // and an identity: sessions begun by then, Unix milliseconds

	whyLeft    = "left"
	whyRemoved = "removed"
)

const (
	// The minute is for clocks that differ.
	endingLife = access.ResumeLife + time.Minute
	// As long as the placement beside it.
	askEndedLimit = 300 * time.Millisecond
	asksOfEndings = 16
	noteLimit     = 500 * time.Millisecond
	noteEvery     = time.Second
	// Past it the next note is lost and logged.
	waitingNotes = 4096
	// For a store that lost its memory.
	rewriteEvery = 30 * time.Second
	keptRemovals = 10_000
	// Nodes' ideas of the store's clock differ by less.
	storeClockSlack = time.Minute
)

var (
	errLeft   = errors.New("this session was ended by a leave")
	errKicked = errors.New("somebody who runs this room removed this person")
)

type endedSessions struct {
	room  ring.RoomID
	notes map[string]string
	until time.Time // by this machine's clock, as the tokens' end: the store's may be set
}

type keptNotes struct {
	mu       sync.Mutex
	removals []endedSessions
}

func leaveOf(who access.Session, now time.Time) endedSessions {
	until := time.Unix(who.Until, 0).Add(endingLife - access.ResumeLife)
	if latest := now.Add(endingLife); latest.Before(until) {
		until = latest
	}
	return endedSessions{room: who.Room, notes: map[string]string{noteEnded + who.Peer: whyLeft}, until: until}
}

// removalFrom notes the peers meant and found, and all earlier sessions of an identity, whose tokens no node may know.
// now is the store's.
func removalFrom(room ring.RoomID, identity, peer string, found []removedPeer, now time.Time) endedSessions {
	e := endedSessions{room: room, notes: make(map[string]string, len(found)+1), until: time.Now().Add(endingLife)}
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

// note retries in the background.
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
	return s.parts.Store.Note(ctx, e.room, e.notes, time.Until(e.until))
}

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

func (s *Server) rewriteRemovals(ctx context.Context) {
	now := time.Now()
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

func (s *Server) writeNotes(ctx context.Context) {
	again := time.NewTicker(rewriteEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			s.panics.Survives(s.log, "noting removals again broke", func() { s.rewriteRemovals(ctx) })
		case <-ctx.Done():
			if lost := len(s.notes); lost > 0 {
				s.log.Warn("ends of sessions are not noted: this node stops, and the store did not answer", "notes", lost)
			}
			return
		case e := <-s.notes:
			s.panics.Survives(s.log, "noting the end of sessions broke: it is given up", func() {
				for s.writeNote(ctx, e) != nil && backoff.Sleep(ctx, noteEvery) {
				}
			}, "room", e.room)
		}
	}
}

// ended returns errLeft, errKicked, nil for a session that may resume, or the store's error.
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
	switch {
	case texts[0] == whyLeft:
		return errLeft
	case texts[0] != "", removes(texts[1], who.Began, s.parts.Store.Now()):
		return errKicked
	}
	return nil
}

// removes reports whether a note of a removal ends a session that began then. Of a session that began ahead of the store's
// clock, which was set back since, the order is unknown: the removal counts. A removal so far ahead that it would hold for
// longer than its note may does not count.
func removes(note string, began int64, now time.Time) bool {
	removed, err := strconv.ParseInt(note, 10, 64)
	switch {
	case err != nil, time.UnixMilli(removed).After(now.Add(endingLife)):
		return false
	case time.UnixMilli(began).After(now.Add(storeClockSlack)):
		return true
	default:
		return began <= removed
	}
}

func over(err error) bool { return errors.Is(err, errLeft) || errors.Is(err, errKicked) }
