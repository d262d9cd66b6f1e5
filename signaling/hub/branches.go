package hub

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// branches are the sessions whose media is at a branch of their room, not at the node of its pin. The hub's lock guards them.
type branches struct {
	of map[Session]pin.BootID
	at map[pin.BootID]map[Session]struct{}
}

func newBranches() branches {
	return branches{of: make(map[Session]pin.BootID), at: make(map[pin.BootID]map[Session]struct{})}
}

// set files a session under a branch; the empty boot takes it out.
func (b *branches) set(s Session, boot pin.BootID) {
	if former, ok := b.of[s]; ok {
		delete(b.at[former], s)
		if len(b.at[former]) == 0 {
			delete(b.at, former)
		}
		delete(b.of, s)
	}
	if boot == "" {
		return
	}
	if b.at[boot] == nil {
		b.at[boot] = make(map[Session]struct{})
	}
	b.of[s], b.at[boot][s] = boot, struct{}{}
}

// Branch says that the session's media is at a branch of its room; the empty boot means the node of the room's pin.
func (h *Hub) Branch(s Session, boot pin.BootID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.branches.of[s] == boot {
		return
	}
	if r := h.rooms[s.Room()]; r != nil {
		h.unstall(s, h.mediaOf(s, r.pin))
	}
	h.branches.set(s, boot)
}

// Branches lists the boots of branches that have sessions' media.
func (h *Hub) Branches() []pin.BootID {
	h.mu.Lock()
	defer h.mu.Unlock()
	boots := make([]pin.BootID, 0, len(h.branches.at))
	for boot := range h.branches.at {
		boots = append(boots, boot)
	}
	return boots
}

// BranchesOf lists the boots that have media of a room's sessions beside its owner, the one with the most first.
func (h *Hub) BranchesOf(room ring.RoomID) []pin.BootID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count(room, &h.branches)
}

// count lists the boots under which the room's sessions are filed, the one with the most first. It needs h.mu.
func (h *Hub) count(room ring.RoomID, filed *branches) []pin.BootID {
	r := h.rooms[room]
	if r == nil || len(filed.of) == 0 {
		return nil
	}
	people := map[pin.BootID]int{}
	for s := range r.sessions {
		if boot, ok := filed.of[s]; ok {
			people[boot]++
		}
	}
	return slices.SortedFunc(maps.Keys(people), func(a, b pin.BootID) int {
		return cmp.Or(cmp.Compare(people[b], people[a]), cmp.Compare(a, b))
	})
}

// Standby says which boot can go on with connections of the session's room, and whether with all of them; the empty boot means none.
func (h *Hub) Standby(s Session, boot pin.BootID, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.standbys.set(s, boot)
	if !all {
		boot = ""
	}
	h.whole.set(s, boot)
}

// wholeAt returns the boot at which all connections of a room go on, if all of its sessions here were told so. It needs h.mu.
func (h *Hub) wholeAt(r *localRoom) (boot pin.BootID) {
	for s := range r.sessions {
		at := h.whole.of[s]
		if at == "" || boot != "" && at != boot {
			return ""
		}
		boot = at
	}
	return boot
}

// StandbyOf returns the boot that can go on with the room's connections, or nothing.
func (h *Hub) StandbyOf(room ring.RoomID) pin.BootID {
	h.mu.Lock()
	defer h.mu.Unlock()
	if boots := h.count(room, &h.standbys); len(boots) > 0 {
		return boots[0]
	}
	return ""
}

// BranchDied has the sessions of a dead branch ask their rooms' owners for another place. It needs no store: no room lived there.
func (h *Hub) BranchDied(boot pin.BootID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.branches.at[boot] {
		s.BranchDied(boot)
	}
}

// Feeds reports whether some session's media is at the boot.
func (h *Hub) Feeds(boot pin.BootID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range h.fedBy(boot) {
		return true
	}
	return false
}

// mediaOf is the boot that has the session's media. It needs h.mu.
func (h *Hub) mediaOf(s Session, p pin.Pin) pin.BootID {
	if branch, ok := h.branches.of[s]; ok {
		return branch
	}
	return p.Boot
}

// fedBy lists the sessions whose media is at the boot. It needs h.mu.
func (h *Hub) fedBy(boot pin.BootID) iter.Seq[Session] {
	return func(yield func(Session) bool) {
		for s := range h.branches.at[boot] {
			if !yield(s) {
				return
			}
		}
		for _, r := range h.byBoot[boot] {
			for s := range r.sessions {
				if _, elsewhere := h.branches.of[s]; !elsewhere && !yield(s) {
					return
				}
			}
		}
	}
}
