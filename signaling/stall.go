package signaling

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// Clients repeat it once a second.
const stallLasts = 3 * time.Second

// stall: a client reported that no media arrives.
type stall struct {
	at    time.Time
	under pin.Fence
}

func (h *Hub) stalled(s *session, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.who.Room]
	if r == nil || r.pin.Fence.Epoch != epoch {
		return
	}
	if _, here := r.sessions[s]; here {
		h.stalls[s] = stall{at: time.Now(), under: r.pin.Fence}
	}
}

// Stalled is part of failover.Rooms.
func (h *Hub) Stalled(boot pin.BootID) (stalled, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, said := range h.stalls {
		r := h.rooms[s.who.Room]
		switch {
		case said.under != r.pin.Fence || time.Since(said.at) >= stallLasts:
			delete(h.stalls, s)
		case r.pin.Boot == boot:
			stalled++
		}
	}
	if stalled == 0 {
		return 0, 0
	}
	for _, r := range h.byBoot[boot] {
		all += len(r.sessions)
	}
	return stalled, all
}
