package sfu

import (
	"sync"

	"github.com/holdfast-rtc/holdfast/control"
)

// A full outbox ends the stream; the next Attach gets a snapshot.
const outboxEvents = 256

// The room's loop fills an outbox without waiting; the stream's writer empties it.
type outbox struct {
	events chan *control.PeerEvent
	ended  chan struct{}

	once sync.Once
	last *control.PeerEvent // set before ended is closed
}

func newOutbox() *outbox {
	return &outbox{events: make(chan *control.PeerEvent, outboxEvents), ended: make(chan struct{})}
}

func (o *outbox) send(event *control.PeerEvent) bool {
	select {
	case o.events <- event:
		return true
	default:
		return false
	}
}

// end closes the stream after what is queued, and after last unless nil.
func (o *outbox) end(last *control.PeerEvent) {
	o.once.Do(func() {
		o.last = last
		close(o.ended)
	})
}

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
