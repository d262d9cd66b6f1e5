package history

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// pinLife is longer than any fault lasts, as in production.
const pinLife = 40 * time.Second

// broken says what is built in wrongly.
type broken string

const (
	sound        broken = ""
	plainSet     broken = "the compare-and-set is a plain SET"
	noNonce      broken = "claims have no nonce"
	plainNX      broken = "the claim overwrites"
	notCompared  broken = "a removal does not compare"
	notProlonged broken = "a pin may expire while its room opens"
	markerStays  broken = "all pins expire, and the incarnation goes on"
	writesDenied broken = "a write that is refused takes effect"
)

// store is one key of a Redis, atomic and without delay.
type store struct {
	record  *record
	broken  broken
	wrote   func(old value, w write) // for every write
	lost    func()                   // for a loss
	trouble func(more int)           // for damage, and its end
	clock   func() time.Time

	mu     sync.Mutex // guards the fields below
	stands value
	until  time.Time
	past   []moment        // history, for a roll-back
	memory pin.Incarnation // the marker; zero when missing
	last   pin.Incarnation
}

type moment struct {
	at     time.Time
	stands value
}

// now needs mu.
func (s *store) now() value {
	if !s.stands.absent() && !time.Now().Before(s.until) {
		s.set(value{})
		s.record.lose("the pin expired", value{}, s.record.now(), s.record.now())
	}
	return s.stands
}

// set needs mu.
func (s *store) set(v value) {
	if was := s.stands.raw != ""; was != (v.raw != "") { // Damage tells nobody anything.
		s.trouble(map[bool]int{true: -1, false: 1}[was])
	}
	s.stands, s.until = v, time.Now().Add(pinLife)
	s.past = append(s.past, moment{at: time.Now(), stands: v})
}

// swap is the compare-and-set. Only a claim, which is one on nothing, is executed when nobody waits.
func (s *store) swap(w write) (stands value, wrote bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.now()
	if !w.old.absent() && !w.ends.IsZero() && s.clock().After(w.ends) {
		return found, false
	}
	blind := s.broken == plainSet && !w.old.absent() || s.broken == plainNX && w.old.absent() || s.broken == notCompared && w.next.IsZero()
	if found != w.old && !blind {
		return found, false
	}
	s.set(value{pin: w.next})
	if s.wrote != nil {
		s.wrote(found, w)
	}
	return s.stands, true
}

// get is GET, or GETEX if it prolongs.
func (s *store) get(prolong bool) value {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.now()
	if prolong && !found.absent() {
		s.until = time.Now().Add(pinLife)
	}
	return found
}

// lapse lets the pin expire after d, unless it was read just now.
func (s *store) lapse(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked := s.until.Add(-pinLife); !s.now().absent() && time.Since(asked) > time.Second {
		s.until = time.Now().Add(d)
	}
}

// forget is a restart without persistence.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(value{})
	s.memory = 0
	s.lost()
	s.record.lose("the store restarted empty", value{}, s.record.now(), s.record.now())
}

// expire is a clock that is set forward by over an hour.
func (s *store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(value{})
	if s.broken != markerStays {
		s.memory = 0
	}
	s.lost()
	s.record.lose("all pins expired", value{}, s.record.now(), s.record.now())
}

// rollBack is a failover to a replica that lacks the last d.
func (s *store) rollBack(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var then value
	for _, m := range s.past {
		if m.at.Before(time.Now().Add(-d)) {
			then = m.stands
		}
	}
	s.memory = 0
	if then == s.stands {
		return
	}
	s.set(then)
	s.lost()
	s.record.lose(fmt.Sprintf("the store lost the writes of the last %v", d), then, s.record.now(), s.record.now())
}

// incarnation begins one that is missing.
func (s *store) incarnation(begin bool) pin.Incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == 0 && begin {
		s.last++
		s.memory = s.last
	}
	return s.memory
}

func (s *store) damage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().absent() {
		return
	}
	s.set(value{raw: "garbage"})
	s.lost()
	s.record.lose("the pin was damaged", s.stands, s.record.now(), s.record.now())
}

// answer is v as the methods return it.
func answer(v value) (pin.Pin, error) {
	if v.raw != "" {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: v.raw, Why: pin.ErrCorrupt}
	}
	return v.pin, nil
}
