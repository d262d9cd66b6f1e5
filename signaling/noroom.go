package signaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// No media node ends a connection in no room, so the signaling node looks for withdrawn keys and removed users.
const noRoom ring.RoomID = "" // of notes about them

const (
	noteRemoval = "removal"

	noRoomEvery    = 2 * time.Second
	askedAtOnce    = 500
	askNoRoomLimit = time.Second
)

var errRemovedUser = errors.New("an operator ended this user's connections")

// noRooms are this node's connections in no room.
type noRooms struct {
	mu  sync.Mutex
	all map[*session]judgedAt // guarded by mu
}

// judgedAt has the last removal compared, and the API key's mark.
type judgedAt struct{ removal, mark string }

func (n *noRooms) add(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[*session]judgedAt)
	}
	n.all[s] = judgedAt{mark: s.server.parts.Keys.Mark(s.who.Key)}
}

func (n *noRooms) drop(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, s)
}

// unjudged lists who was not compared with the removal, and ends those without a key.
func (n *noRooms) unjudged(removal string) (list []*session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s, at := range n.all {
		switch {
		case at.mark == "" || at.mark != s.server.parts.Keys.Mark(s.who.Key):
			s.tryExpel(fmt.Errorf("%w: it was withdrawn", access.ErrUnknownKey))
		case removal != "" && at.removal != removal:
			list = append(list, s)
		}
	}
	return list
}

func (n *noRooms) judged(list []*session, removal string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range list {
		if at, here := n.all[s]; here {
			n.all[s] = judgedAt{removal: removal, mark: at.mark}
		}
	}
}

func (s *Server) watchNoRooms(ctx context.Context) {
	backoff.Every(ctx, noRoomEvery, func() {
		s.panics.Survives(s.log, "a look at connections in no room broke", func() { s.judgeNoRooms(ctx) })
	})
}

// Only a new removal is compared with everybody.
func (s *Server) judgeNoRooms(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, askNoRoomLimit)
	defer cancel()
	removal := ""
	if texts, err := s.parts.Store.Notes(limited, noRoom, noteRemoval); err == nil {
		removal = texts[0]
	}
	for part := range slices.Chunk(s.noRooms.unjudged(removal), askedAtOnce) {
		names := make([]string, len(part))
		for i, one := range part {
			names[i] = noteRemoved + one.who.Identity
		}
		texts, err := s.parts.Store.Notes(limited, noRoom, names...)
		if err != nil {
			return
		}
		var judged []*session
		for i, one := range part {
			if !removes(texts[i], one.who.Began, s.parts.Store.Now()) || one.tryExpel(errRemovedUser) {
				judged = append(judged, one)
			}
		}
		s.noRooms.judged(judged, removal)
	}
}
