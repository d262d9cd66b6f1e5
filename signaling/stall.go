package signaling

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// stallLasts is how long a client's word that nothing arrives counts: it repeats it about once a second.
const stallLasts = 3 * time.Second

// stall is when a client last said that no media arrives, and under which fence.
type stall struct {
	at    time.Time
	under pin.Fence
}

// stalled notes a client's word. One about another place of the room than the present one says nothing.
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

// Stalled counts the sessions here whose room is on the boot and whose client says that nothing arrives from
// it; all counts the others too, where there is such a one. It costs nothing while nobody complains.
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
