package signaling

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Clients that all signaling nodes together have under way to one media node. More would share its cores, and all be late.
	moveWindow      = 64
	leastMoveWindow = 8

	// Then a far or gone client counts no longer.
	onTheWay = 100 * time.Millisecond

	// In rooms larger than the window, visible people go first.
	headStart = 75 * time.Millisecond
)

// window is one media node's moved clients; one's media lets the next one go.
type window struct {
	under   map[*session]*time.Timer // on their way
	waiting []*movedRoom             // taking turns
}

type movedRoom struct {
	room     ring.RoomID
	sessions []*session // visible ones first
	rest     time.Time  // when the others may go
}

// sendTo needs h.mu.
func (h *Hub) sendTo(room ring.RoomID, r *localRoom) {
	boot := r.pin.Boot
	w := h.windows[boot]
	if w == nil {
		w = &window{under: make(map[*session]*time.Timer)}
		h.windows[boot] = w
	}
	moved := &movedRoom{room: room}
	for s := range r.sessions {
		moved.sessions = append(moved.sessions, s)
		if known := s.room.Load(); known != nil && known.People > moveWindow && known.Cameras > 0 && moved.rest.IsZero() {
			moved.rest = time.Now().Add(headStart)
			time.AfterFunc(headStart, func() { h.goOn(boot) })
		}
	}
	slices.SortFunc(moved.sessions, func(a, b *session) int { return ones(b.shown.Load()) - ones(a.shown.Load()) })
	w.waiting = append(w.waiting, moved)
	h.advance(boot, w)
}

func (h *Hub) goOn(boot pin.BootID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.windows[boot]; w != nil {
		h.advance(boot, w)
	}
}

// advance needs h.mu.
func (h *Hub) advance(boot pin.BootID, w *window) {
	now, passed := time.Now(), 0
	for most := max(moveWindow/max(h.nodes(), 1), leastMoveWindow); len(w.under) < most && len(w.waiting) > passed; {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		s := next.sessions[0]
		if !s.shown.Load() && now.Before(next.rest) {
			w.waiting, passed = append(w.waiting, next), passed+1
			continue
		}
		passed = 0
		if next.sessions = next.sessions[1:]; len(next.sessions) > 0 {
			w.waiting = append(w.waiting, next)
		}
		r := h.rooms[next.room]
		if r == nil || r.pin.Boot != boot {
			continue
		}
		if _, here := r.sessions[s]; here {
			post(s.moves, r.pin)
			w.under[s] = time.AfterFunc(onTheWay, func() { h.arrived(s, boot) })
		}
	}
	if len(w.under)+len(w.waiting) == 0 {
		delete(h.windows, boot)
	}
}

// arrived: this client has media on boot, or counts no longer.
func (h *Hub) arrived(s *session, boot pin.BootID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unload(s, boot)
}

// unload needs h.mu.
func (h *Hub) unload(s *session, boot pin.BootID) {
	w := h.windows[boot]
	if w == nil || w.under[s] == nil {
		return
	}
	w.under[s].Stop()
	delete(w.under, s)
	h.advance(boot, w)
}
