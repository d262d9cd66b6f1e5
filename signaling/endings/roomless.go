package endings

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// noRoom is the room of notes about connections in no room.
const noRoom ring.RoomID = ""

const (
	// The text of noteRemoval changes with each removal, so that connections are compared with the store only after a new one.
	noteRemoval = "removal"

	lookEvery   = 2 * time.Second
	askedAtOnce = 500
	askRemovals = time.Second
)

// ErrRemovedUser ends a connection in no room whose user an operator removed.
var ErrRemovedUser = fault.Coded(wire.CodeKicked, "an operator ended this user's connections")

// Connection is a connection in no room.
type Connection struct {
	Who access.Session
	// End ends the connection with a verdict. It returns false without waiting if the connection is busy; the next check repeats the verdict.
	End func(verdict error) bool
}

type roomless struct {
	mu  sync.Mutex
	all map[*Connection]judgedAt // guarded by mu
}

// judgedAt says what a connection was compared with last.
type judgedAt struct {
	removal string
	mark    string // of its API key, when it began
}

// Watch looks after a connection in no room until Forget.
func (e *Endings) Watch(c *Connection) {
	e.roomless.mu.Lock()
	defer e.roomless.mu.Unlock()
	if e.roomless.all == nil {
		e.roomless.all = make(map[*Connection]judgedAt)
	}
	e.roomless.all[c] = judgedAt{mark: e.deps.Keys.Mark(c.Who.Key)}
}

// Forget ends Watch. It may be called without one.
func (e *Endings) Forget(c *Connection) {
	e.roomless.mu.Lock()
	defer e.roomless.mu.Unlock()
	delete(e.roomless.all, c)
}

// Watched counts the connections in no room.
func (e *Endings) Watched() int {
	e.roomless.mu.Lock()
	defer e.roomless.mu.Unlock()
	return len(e.roomless.all)
}

// RemoveUser ends a user's connections in no room, at every signaling node. It is no ban. An error says that the store has not taken it
// yet; Run retries.
func (e *Endings) RemoveUser(ctx context.Context, user string) error {
	return e.write(ctx, note{room: noRoom, until: time.Now().Add(noteLife), texts: map[string]string{
		noteRemoved + user: strconv.FormatInt(e.deps.Store.Now().UnixMilli(), 10), noteRemoval: rand.Text(),
	}})
}

func (e *Endings) watchRoomless(ctx context.Context) {
	backoff.Every(ctx, lookEvery, func() {
		e.deps.Panics.Catch(e.deps.Log, "a look at connections in no room broke", func() { e.judgeRoomless(ctx) })
	})
}

// judgeRoomless compares all connections with the store only after a new removal.
func (e *Endings) judgeRoomless(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, askRemovals)
	defer cancel()
	removal := ""
	if texts, err := e.deps.Store.Notes(limited, noRoom, noteRemoval); err == nil {
		removal = texts[0]
	}
	for part := range slices.Chunk(e.unjudged(removal), askedAtOnce) {
		names := make([]string, len(part))
		for i, one := range part {
			names[i] = noteRemoved + one.Who.Identity
		}
		texts, err := e.deps.Store.Notes(limited, noRoom, names...)
		if err != nil {
			return
		}
		var judged []*Connection
		for i, one := range part {
			if !removes(texts[i], one.Who.Began, e.deps.Store.Now()) || one.End(ErrRemovedUser) {
				judged = append(judged, one)
			}
		}
		e.judged(judged, removal)
	}
}

// unjudged lists the connections that were not compared with the removal. It ends those whose API key was withdrawn.
func (e *Endings) unjudged(removal string) (list []*Connection) {
	e.roomless.mu.Lock()
	defer e.roomless.mu.Unlock()
	for c, at := range e.roomless.all {
		switch {
		case at.mark == "" || at.mark != e.deps.Keys.Mark(c.Who.Key):
			c.End(fmt.Errorf("%w: it was withdrawn", access.ErrUnknownKey))
		case removal != "" && at.removal != removal:
			list = append(list, c)
		}
	}
	return list
}

func (e *Endings) judged(list []*Connection, removal string) {
	e.roomless.mu.Lock()
	defer e.roomless.mu.Unlock()
	for _, c := range list {
		if at, here := e.roomless.all[c]; here {
			e.roomless.all[c] = judgedAt{removal: removal, mark: at.mark}
		}
	}
}
