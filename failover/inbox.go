package failover

import (
	"sync"

	"github.com/holdfast-rtc/holdfast/pin"
)

// notice is what Seen and Fenced were told.
type notice struct {
	room  LocalRoom
	to    pin.Pin   // the higher pin, when it is known
	fence pin.Fence // else its fence
}

// key names the move that the notice asks for.
func (n notice) key() moveKey { return moveKey{n.room.Room, n.room.Pin.Boot} }

// inbox holds the notices that wait for Run. Notices about one room and boot are merged, so it
// is bounded by the local rooms and never drops one.
type inbox struct {
	wake chan struct{} // capacity 1

	mu      sync.Mutex // guards waiting
	waiting map[moveKey]notice
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), waiting: map[moveKey]notice{}}
}

// put adds a notice and wakes Run.
func (i *inbox) put(n notice) {
	i.keep(n)
	select {
	case i.wake <- struct{}{}:
	default: // It is awake already.
	}
}

// keep adds a notice for the next look. Of two, a known pin counts more than a fence, and the higher more.
func (i *inbox) keep(n notice) {
	i.mu.Lock()
	defer i.mu.Unlock()
	old, ok := i.waiting[n.key()]
	if ok && n.to.Fence.Compare(old.to.Fence) <= 0 && n.fence.Compare(old.fence) <= 0 {
		return
	}
	i.waiting[n.key()] = n
}

// take empties the inbox.
func (i *inbox) take() []notice {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []notice
	for _, n := range i.waiting {
		all = append(all, n)
	}
	clear(i.waiting)
	return all
}
