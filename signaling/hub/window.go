package hub

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
	under   map[Session]*time.Timer // on their way
	waiting []*movedRoom            // taking turns
}

type movedRoom struct {
	room     ring.RoomID
	sessions []Session // visible ones first
	rest     time.Time // when the others may go
}

// sendTo needs h.mu.
func (h *Hub) sendTo(room ring.RoomID, r *localRoom) {
	boot := r.pin.Boot
	w := h.windows[boot]
	if w == nil {
		w = &window{under: make(map[Session]*time.Timer)}
		h.windows[boot] = w
	}
	moved := &movedRoom{room: room}
	for s := range r.sessions {
		moved.sessions = append(moved.sessions, s)
		if known := s.Load(); known != nil && known.People > moveWindow && known.Cameras > 0 && moved.rest.IsZero() {
			moved.rest = time.Now().Add(headStart)
			time.AfterFunc(headStart, func() { h.goOn(boot) })
		}
	}
	slices.SortFunc(moved.sessions, func(a, b Session) int { return ones(b.Shown()) - ones(a.Shown()) })
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
	for most := max(moveWindow/max(h.deps.Nodes(), 1), leastMoveWindow); len(w.under) < most && len(w.waiting) > passed; {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		s := next.sessions[0]
		if !s.Shown() && now.Before(next.rest) {
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
			s.Move(r.pin)
			w.under[s] = time.AfterFunc(onTheWay, func() { h.Arrived(s, boot) })
		}
	}
	if len(w.under)+len(w.waiting) == 0 {
		delete(h.windows, boot)
	}
}

// Arrived says that this client has media on the boot, so that the next one may go.
func (h *Hub) Arrived(s Session, boot pin.BootID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unload(s, boot)
}

// unload needs h.mu.
func (h *Hub) unload(s Session, boot pin.BootID) {
	w := h.windows[boot]
	if w == nil || w.under[s] == nil {
		return
	}
	w.under[s].Stop()
	delete(w.under, s)
	h.advance(boot, w)
}

func ones(fact bool) int {
	if fact {
		return 1
	}
	return 0
}
