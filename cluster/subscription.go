package cluster

import (
	"slices"
	"sync"
)

const maxPending = 1024

type subscription struct {
	events chan Event
	stop   chan struct{}
	wake   chan struct{}

	mu      sync.Mutex
	pending []Event
	ended   bool
}

func newSubscription() *subscription {
	return &subscription{events: make(chan Event), stop: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// push queues an event and never blocks. A death or leave replaces the queued events of the same boot. It returns
// false if the queue was full, which ends the subscription.
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
	wake(s.wake)
	return !s.ended
}

func (s *subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	wake(s.wake)
}

func wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// deliver sends one event at a time, so that those which wait can still be merged.
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
