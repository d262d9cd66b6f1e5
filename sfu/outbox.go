package sfu

import (
	"sync"

	"github.com/holdfast-rtc/holdfast/control"
)

// outboxEvents bounds what waits for one peer's signaling node; a join of 250 others at once fits. A full box ends the stream: the
// signaling node that attaches next gets a snapshot.
const outboxEvents = 256

// outbox is what waits to be sent on one Attach stream. The room's loop fills
// it and never waits; the stream's writer empties it.
type outbox struct {
	events chan *control.PeerEvent
	ended  chan struct{}

	once sync.Once
	last *control.PeerEvent // said after everything else; nil for nothing. Set before ended is closed.
}

func newOutbox() *outbox {
	return &outbox{events: make(chan *control.PeerEvent, outboxEvents), ended: make(chan struct{})}
}

// send queues an event and reports whether there was room for it.
func (o *outbox) send(event *control.PeerEvent) bool {
	select {
	case o.events <- event:
		return true
	default:
		return false
	}
}

// end lets the stream end after what is queued and, if not nil, last.
func (o *outbox) end(last *control.PeerEvent) {
	o.once.Do(func() {
		o.last = last
		close(o.ended)
	})
}

// drain writes what is queued and what comes, until the end or the first error.
func (o *outbox) drain(write func(*control.PeerEvent) error) error {
	for {
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
			continue
		default:
		}
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
		case <-o.ended:
			return o.drainRest(write)
		}
	}
}

func (o *outbox) drainRest(write func(*control.PeerEvent) error) error {
	for {
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
		default:
			if o.last == nil {
				return nil
			}
			return write(o.last)
		}
	}
}
