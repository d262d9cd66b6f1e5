package failover

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Beyond these bounds a boot that comes back learns of its lost rooms by refreshing their pins.
	movesPerBoot = 10_000
	bootsOfMoves = 64
	// A pin lives for an hour, so older moves need not be told.
	movesLifetime = time.Hour
)

type moveKey struct {
	room ring.RoomID
	boot pin.BootID
}

// moves remembers where the rooms of gone boots went, so that a boot that comes back can be told.
type moves struct {
	mu    sync.Mutex
	boots map[pin.BootID]*bootMoves
	order []pin.BootID
}

type bootMoves struct {
	node    ring.NodeID
	control string
	at      time.Time
	rooms   map[ring.RoomID]moved
	told    map[ring.RoomID]pin.Fence
	order   []ring.RoomID
}

type moved struct {
	to pin.Pin
	at time.Time
}

func newMoves() *moves { return &moves{boots: map[pin.BootID]*bootMoves{}} }

// add notes that the room went from the boot of from to the pin to. The oldest rooms and boots beyond the bounds are
// forgotten.
func (m *moves) add(room ring.RoomID, from, to pin.Pin) {
	if to.Boot == from.Boot {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boots[from.Boot]
	if b == nil {
		b = &bootMoves{
			node: from.Node, control: from.Control,
			rooms: map[ring.RoomID]moved{}, told: map[ring.RoomID]pin.Fence{},
		}
		m.boots[from.Boot] = b
		m.order = append(m.order, from.Boot)
	}
	b.at = time.Now()
	// A later answer with a lower fence is an old one and changes nothing.
	if old, ok := b.rooms[room]; !ok {
		b.order = append(b.order, room)
	} else if !old.to.Fence.Less(to.Fence) {
		return
	}
	b.rooms[room] = moved{to, b.at}
	if len(b.order) > movesPerBoot {
		delete(b.rooms, b.order[0])
		delete(b.told, b.order[0])
		b.order = b.order[1:]
	}
	if len(m.order) > bootsOfMoves {
		delete(m.boots, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *moves) to(key moveKey) (to pin.Pin, ago time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boots[key.boot]; b != nil {
		if to, ok := b.rooms[key.room]; ok {
			return to.to, time.Since(to.at), true
		}
	}
	return pin.Pin{}, 0, false
}

func (m *moves) untold(boot pin.BootID) (node ring.NodeID, control string, lost []pin.Holding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boots[boot]
	if b == nil {
		return "", "", nil
	}
	for _, room := range b.order {
		if to := b.rooms[room].to; b.told[room].Less(to.Fence) {
			lost = append(lost, pin.Holding{Room: room, Pin: to})
		}
	}
	return b.node, b.control, lost
}

// tell notes that the boot knows of the fence: it never serves the room at or below that fence again.
func (m *moves) tell(key moveKey, fence pin.Fence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boots[key.boot]; b != nil {
		if _, ok := b.rooms[key.room]; ok {
			b.told[key.room] = fence
		}
	}
}

func (m *moves) forget(boot pin.BootID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.boots, boot)
	m.order = slices.DeleteFunc(m.order, func(b pin.BootID) bool { return b == boot })
}

// pending lists the boots that have not been told of all their moves. It also forgets boots whose last move is older
// than movesLifetime.
func (m *moves) pending() []pin.BootID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var pending []pin.BootID
	m.order = slices.DeleteFunc(m.order, func(boot pin.BootID) bool {
		b := m.boots[boot]
		if time.Since(b.at) > movesLifetime {
			delete(m.boots, boot)
			return true
		}
		for room, to := range b.rooms {
			if b.told[room].Less(to.to.Fence) {
				pending = append(pending, boot)
				break
			}
		}
		return false
	})
	return pending
}
