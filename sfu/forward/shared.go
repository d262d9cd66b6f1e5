package forward

import (
	"slices"
	"sync"
)

// shared is what the room's loop exchanges with callers who must not wait for it.
type shared struct {
	mu      sync.Mutex
	tables  map[PeerID][]Entry // guarded by mu
	lacks   map[PeerID][]Lack  // guarded by mu
	demand  Demand             // guarded by mu
	budgets map[PeerID]uint64  // guarded by mu; the loop takes and clears them
}

func newShared() shared {
	return shared{tables: make(map[PeerID][]Entry), lacks: make(map[PeerID][]Lack), budgets: make(map[PeerID]uint64)}
}

func (h *shared) table(peer PeerID) []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tables[peer])
}

// storeTable reports whether the table of a subscriber differs from the one that was stored last.
func (h *shared) storeTable(sub *subscriber) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	table := h.tables[sub.peer]
	for i, s := range sub.slots {
		s.position = i
	}
	if slices.EqualFunc(table, sub.slots, func(e Entry, s *Slot) bool { return e == s.tableEntry() }) {
		return false
	}
	table = table[:0]
	for _, s := range sub.slots {
		table = append(table, s.tableEntry())
	}
	h.tables[sub.peer] = table
	return true
}

// storeMoved updates the entries of a few slots, without comparing the whole table.
func (h *shared) storeMoved(sub *subscriber, moved []*Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range moved {
		h.tables[sub.peer][s.position] = s.tableEntry()
	}
}

func (h *shared) lacksOf(peer PeerID) []Lack {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lacks[peer]
}

func (h *shared) storeLacks(peer PeerID, lacks []Lack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lacks[peer] = lacks
}

func (h *shared) lastDemand() Demand {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.demand
}

func (h *shared) storeDemand(d Demand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.demand = d
}

func (h *shared) setBudget(peer PeerID, bitsPerSecond uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budgets[peer] = bitsPerSecond
}

// takeBudgets gives the subscribers the budgets that were set since the last call, and reports whether there were any.
func (h *shared) takeBudgets(subscribers map[PeerID]*subscriber) (taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for peer, budget := range h.budgets {
		if sub := subscribers[peer]; sub != nil {
			sub.budget = budget
			taken = true
		}
	}
	clear(h.budgets)
	return taken
}

func (h *shared) remove(peer PeerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tables, peer)
	delete(h.lacks, peer)
}
