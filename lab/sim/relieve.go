package sim

import (
	"context"
	"time"

	"github.com/holdfast-rtc/holdfast/failover/relief"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// moveLasts is how long a room's people take to connect to the other node.
	moveLasts = 2 * time.Second
	// Rooms of cooler nodes need not be listed: relief takes none from them.
	warm = 0.40
)

// relieving is a room on its way.
type relieving struct {
	room ring.RoomID
	ends time.Duration
}

// relieve does what failover's driver does, without its turns: one signaling node knows all rooms.
func (p *holdfast) relieve() (moved int) {
	w, now := p.world, p.epoch.Add(p.world.now)
	for len(p.under) > 0 && p.under[0].ends <= w.now {
		p.cools.Ended(p.under[0].room, now)
		p.under = p.under[1:]
	}
	var nodes []relief.Node
	var rooms []relief.Room
	numbers := map[ring.RoomID]int{}
	for _, n := range w.living() {
		nodes = append(nodes, relief.Node{ID: n.id, Open: true, Load: n.report, Ceiling: n.ceiling})
		if n.report.Share(n.ceiling) < warm || n.report.Share(n.ceiling) < w.result.Mean {
			continue
		}
		for number := range n.rooms {
			if r := &w.rooms[number]; r.filled {
				id := roomID(number)
				numbers[id] = number
				rooms = append(rooms, relief.Room{ID: id, On: n.id, Sends: r.cost()})
			}
		}
	}
	for _, m := range p.cools.Next(now, nodes, rooms) {
		number := numbers[m.Room]
		p.under = append(p.under, relieving{m.Room, w.now + moveLasts})
		if to, err := p.makes[0].Move(context.Background(), m.Room, p.store[m.Room], m.To, w.rooms[number].expect(), m.Why); err == nil && to.Node == m.To {
			w.take(number)
			w.put(number, w.index[m.To])
			moved++
		}
	}
	return moved
}
