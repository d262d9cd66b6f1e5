package cluster

import (
	"slices"
	"sync"
)

// maxPending bounds the events that wait for one subscriber. At most two wait
// per boot (see push), so a subscriber overflows only when it has not read for
// a thousand joins and deaths.
const maxPending = 1024

// subscription is one subscriber's queue. push never blocks, so a slow
// subscriber holds up neither gossip nor the others.
type subscription struct {
	events chan Event
	stop   chan struct{} // closed by cancel
	wake   chan struct{} // capacity 1

	mu      sync.Mutex // guards the fields below
	pending []Event
	ended   bool // no more events: deliver what is pending, then close
}

func newSubscription() *subscription {
	return &subscription{events: make(chan Event), stop: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// push queues an event, merged with what waits for the same boot:
//
//   - a death or leave replaces everything that waits for that boot, so a boot that
//     came and went unseen is reported only as gone;
//   - a join after a waiting death waits behind it, and replaces a waiting join.
//
// So a death is never dropped. It returns false, and ends the subscription, when the
// queue is full of distinct boots.
func (s *subscription) push(event Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return true
	}
	s.pending = slices.DeleteFunc(s.pending, func(old Event) bool {
		return old.Node.Boot == event.Node.Boot && (event.Kind != EventJoined || old.Kind == EventJoined)
	})
	if len(s.pending) == maxPending {
		s.ended = true
	} else {
		s.pending = append(s.pending, event)
	}
	s.notify()
	return !s.ended
}

// end closes the channel once what is pending has been read.
func (s *subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.notify()
}

func (s *subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// deliver moves events from the queue to the channel until cancel or end. It takes
// one at a time, so that whatever waits can still be merged.
func (s *subscription) deliver() {
	defer close(s.events)
	for {
		s.mu.Lock()
		var event Event
		some, ended := len(s.pending) > 0, s.ended
		if some {
			event = s.pending[0]
			s.pending = append(s.pending[:0], s.pending[1:]...)
		}
		s.mu.Unlock()
		switch {
		case some:
			select {
			case s.events <- event:
			case <-s.stop:
				return
			}
		case ended:
			return
		default:
			select {
			case <-s.wake:
			case <-s.stop:
				return
			}
		}
	}
}
