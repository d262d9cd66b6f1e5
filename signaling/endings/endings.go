// Package endings remembers which sessions are over for good: it notes leaves and removals in the store, and answers whether a session may
// resume.
//
// A note lives as long as a token could bring the person back. Whoever asks while the store is silent gets its error: a resume is then let
// in and judged later, because running calls need no store. A note that cannot be written waits and is retried; when too many wait, one
// more is lost and logged.
//
// No media node ends a connection that is in no room. This package looks after those: it ends the connections of removed users and of
// withdrawn API keys. Begin with Endings.
package endings

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Names and texts of notes. A note about a removed identity has the time of the removal in Unix milliseconds: it ends the sessions that
// began by then. The text of a leave is the peer that left.
const (
	noteEnded   = "ended/"   // and a peer
	noteRemoved = "removed/" // and an identity
	noteLeft    = "left/"    // and an identity, a slash and a slot
	// noteCallEnded is like that of a removed identity, but for everybody in the room.
	noteCallEnded = "call-ended"

	whyLeft    = "left" // what an older node writes to noteEnded
	whyRemoved = "removed"
)

// An identity's leaves share this many slots of a room, in which a later leave replaces an earlier one, so that nobody fills the store by
// joining and leaving. Whoever left then may resume an earlier session, as with the access token that they also have.
const leaveSlots = 64

const (
	// The minute is for clocks that differ.
	noteLife = access.ResumeLife + time.Minute
	// As long as the placement that runs beside the question.
	askLimit   = 300 * time.Millisecond
	asksAtOnce = 16
	writeLimit = 500 * time.Millisecond
	retryEvery = time.Second
	unwritten  = 4096
	// Removals are written again, for a store that lost its memory.
	rewriteEvery = 30 * time.Second
	keptRemovals = 10_000
	// Signaling nodes' ideas of the store's clock differ by less.
	storeClockSlack = time.Minute
)

// Why a session may not resume.
var (
	ErrLeft      = fault.Coded(wire.CodeResumeExpired, "this session was ended by a leave")
	ErrCallEnded = fault.Coded(wire.CodeCallEnded, "somebody who runs this room ended the call for everybody")
	ErrKicked    = fault.Coded(wire.CodeKicked, "somebody who runs this room removed this person")
)

// Over reports whether Ended said that the session is over, rather than that the store did not answer.
func Over(err error) bool {
	return errors.Is(err, ErrLeft) || errors.Is(err, ErrKicked) || errors.Is(err, ErrCallEnded)
}

// Store keeps notes about rooms; see redisstore.
type Store interface {
	Note(ctx context.Context, room ring.RoomID, notes map[string]string, life time.Duration) error
	Notes(ctx context.Context, room ring.RoomID, names ...string) ([]string, error)
	// Now is the store's clock.
	Now() time.Time
}

// Keys tells whether an API key is still valid; see access.Keyring.
type Keys interface {
	// Mark changes with the key's secret. It is empty for a withdrawn key.
	Mark(key string) string
}

// Deps is what Endings need.
type Deps struct {
	Store  Store
	Keys   Keys
	Panics *panics.Guard
	Log    *slog.Logger
}

// Endings is one signaling node's part. All methods may be called concurrently.
type Endings struct {
	deps   Deps
	late   chan note     // notes that the store has not taken yet
	asking chan struct{} // bounds the questions under way

	mu       sync.Mutex
	removals []note // guarded by mu

	roomless roomless
}

// note is a set of notes about one room.
type note struct {
	room  ring.RoomID
	texts map[string]string
	until time.Time // by this machine's clock, like the ends of tokens: the store's clock may be set
}

// New returns Endings that need Run.
func New(deps Deps) *Endings {
	return &Endings{deps: deps, late: make(chan note, unwritten), asking: make(chan struct{}, asksAtOnce)}
}

// Run writes late notes and looks after connections in no room until ctx ends.
func (e *Endings) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { e.writeLate(ctx) })
	both.Go(func() { e.watchRoomless(ctx) })
	both.Wait()
}

// Left notes that a session was ended by a leave. If the store does not take the note now, Run retries.
func (e *Endings) Left(ctx context.Context, who access.Session) {
	_ = e.write(ctx, leaveOf(who, time.Now()))
}

func leaveOf(who access.Session, now time.Time) note {
	until := time.Unix(who.Until, 0).Add(noteLife - access.ResumeLife)
	if latest := now.Add(noteLife); latest.Before(until) {
		until = latest
	}
	return note{room: who.Room, texts: map[string]string{leaveName(who): who.Peer}, until: until}
}

func leaveName(who access.Session) string {
	slot := fnv.New32a()
	_, _ = slot.Write([]byte(who.Peer)) // it never fails
	return noteLeft + who.Identity + "/" + strconv.Itoa(int(slot.Sum32()%leaveSlots))
}

// Removed notes the removal of peers, and of all sessions that an identity has begun so far, since no node may know their tokens. The
// identity may be empty. An error says that the note is not written yet; Run retries.
func (e *Endings) Removed(ctx context.Context, room ring.RoomID, identity string, peers ...string) error {
	n := removalOf(room, identity, peers, e.deps.Store.Now())
	if len(n.texts) == 0 {
		return nil
	}
	return e.remove(ctx, n)
}

// CallEnded notes the end of all sessions that have begun in a room so far. An error says that the note is not written yet; Run retries.
func (e *Endings) CallEnded(ctx context.Context, room ring.RoomID) error {
	return e.remove(ctx, note{room: room, until: time.Now().Add(noteLife), texts: map[string]string{
		noteCallEnded: strconv.FormatInt(e.deps.Store.Now().UnixMilli(), 10),
	}})
}

// remove writes a removal, now and again.
func (e *Endings) remove(ctx context.Context, n note) error {
	e.mu.Lock()
	e.removals = append(e.removals, n)
	if len(e.removals) > keptRemovals {
		e.removals = e.removals[1:]
	}
	e.mu.Unlock()
	return e.write(ctx, n)
}

// now is the store's.
func removalOf(room ring.RoomID, identity string, peers []string, now time.Time) note {
	n := note{room: room, texts: make(map[string]string, len(peers)+1), until: time.Now().Add(noteLife)}
	for _, peer := range peers {
		if peer != "" {
			n.texts[noteEnded+peer] = whyRemoved
		}
	}
	if identity != "" {
		n.texts[noteRemoved+identity] = strconv.FormatInt(now.UnixMilli(), 10)
	}
	return n
}

// write leaves to Run what the store does not take.
func (e *Endings) write(ctx context.Context, n note) error {
	err := e.tryWrite(ctx, n)
	if err == nil {
		return nil
	}
	select {
	case e.late <- n:
		e.deps.Log.Debug("the end of sessions is not noted yet", "room", n.room, "error", err)
	default:
		e.deps.Log.Error("the end of sessions is not noted: too many wait for the store", "room", n.room, "waiting", unwritten, "error", err)
	}
	return err
}

func (e *Endings) tryWrite(ctx context.Context, n note) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return e.deps.Store.Note(ctx, n.room, n.texts, time.Until(n.until))
}

func (e *Endings) writeLate(ctx context.Context) {
	again := time.NewTicker(rewriteEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			e.deps.Panics.Catch(e.deps.Log, "noting removals again broke", func() { e.RewriteRemovals(ctx) })
		case <-ctx.Done():
			if lost := len(e.late); lost > 0 {
				e.deps.Log.Warn("ends of sessions are not noted: this node stops, and the store did not answer", "notes", lost)
			}
			return
		case n := <-e.late:
			e.deps.Panics.Catch(e.deps.Log, "noting the end of sessions broke: it is given up", func() {
				for e.tryWrite(ctx, n) != nil && backoff.Sleep(ctx, retryEvery) {
				}
			}, "room", n.room)
		}
	}
}

// RewriteRemovals writes the removals again, for a store that lost its memory. Run does so twice a minute.
func (e *Endings) RewriteRemovals(ctx context.Context) {
	now := time.Now()
	e.mu.Lock()
	e.removals = slices.DeleteFunc(e.removals, func(n note) bool { return !now.Before(n.until) })
	all := slices.Clone(e.removals)
	e.mu.Unlock()
	for _, n := range all {
		if e.tryWrite(ctx, n) != nil {
			return
		}
	}
}

// Ended returns ErrLeft, ErrKicked, ErrCallEnded, nil for a session that may resume, or the store's error.
func (e *Endings) Ended(ctx context.Context, who access.Session) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	texts, err := e.deps.Store.Notes(ctx, who.Room, noteEnded+who.Peer, noteRemoved+who.Identity, leaveName(who), noteCallEnded)
	if err != nil {
		return err
	}
	switch {
	case removes(texts[3], who.Began, e.deps.Store.Now()):
		return ErrCallEnded
	case texts[0] == whyLeft, texts[2] == who.Peer:
		return ErrLeft
	case texts[0] != "", removes(texts[1], who.Began, e.deps.Store.Now()):
		return ErrKicked
	}
	return nil
}

// removes reports whether a note of a removal ends a session that began then. Of a session that began ahead of the store's
// clock, which was set back since, the order is unknown: the removal counts. A removal so far ahead that it would hold for
// longer than its note may does not count.
func removes(note string, began int64, now time.Time) bool {
	removed, err := strconv.ParseInt(note, 10, 64)
	switch {
	case err != nil, time.UnixMilli(removed).After(now.Add(noteLife)):
		return false
	case time.UnixMilli(began).After(now.Add(storeClockSlack)):
		return true
	default:
		return began <= removed
	}
}
