package signaling

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// Clients repeat it once a second.
const stallLasts = 3 * time.Second

// stalled notes that a client reported that no media arrives from its room's node.
func (h *Hub) stalled(s *session, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.who.Room]
	if r == nil || r.pin.Fence.Epoch != epoch {
		return
	}
	if _, here := r.sessions[s]; !here {
		return
	}
	if h.stalls[r.pin.Boot] == nil {
		h.stalls[r.pin.Boot] = make(map[*session]time.Time)
	}
	h.stalls[r.pin.Boot][s] = time.Now()
}

// unstall needs h.mu.
func (h *Hub) unstall(s *session, boot pin.BootID) {
	delete(h.stalls[boot], s)
	if len(h.stalls[boot]) == 0 {
		delete(h.stalls, boot)
	}
}

// Stalled is part of failover.Rooms. It costs nothing for the stalls of other nodes: the detector asks about each node many times a second.
func (h *Hub) Stalled(boot pin.BootID) (stalled, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, at := range h.stalls[boot] {
		if time.Since(at) >= stallLasts {
			h.unstall(s, boot)
		} else {
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
