package history

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// pinLife is how long a pin outlives its last refresh here: longer than any fault of a schedule
// lasts, as an hour is longer than any outage that can be ridden out.
const pinLife = 40 * time.Second

// broken says how a store or a cluster is broken on purpose, to see the harness find it.
type broken string

const (
	sound        broken = ""
	plainSet     broken = "the compare-and-set is a plain SET"
	noNonce      broken = "claims have no nonce"
	plainNX      broken = "the claim overwrites"
	notCompared  broken = "a removal does not compare"
	notProlonged broken = "a pin may expire while its room opens"
	writesDenied broken = "a write that is refused takes effect"
)

// store is one key of a Redis: what it does is atomic and takes no time. Links lead to it.
type store struct {
	record  *record
	broken  broken
	wrote   func(old value, w write) // told of every write
	lost    func()                   // told when it forgets
	trouble func(more int)           // told when its pin is damaged, and when no more
	clock   func() time.Time

	mu     sync.Mutex // guards the fields below
	stands value
	until  time.Time
	past   []moment        // what stood from when on, for going back in time
	memory pin.Incarnation // the marker; zero when a new master has none yet
	last   pin.Incarnation
}

type moment struct {
	at     time.Time
	stands value
}

// now is what stands, after expiry. Call it with mu held.
func (s *store) now() value {
	if !s.stands.absent() && !time.Now().Before(s.until) {
		s.set(value{})
		s.record.lose("the pin expired", value{}, s.record.now(), s.record.now())
	}
	return s.stands
}

// set changes what stands. Call it with mu held.
func (s *store) set(v value) {
	if was := s.stands.raw != ""; was != (v.raw != "") { // Nobody learns anything from a pin that is damaged, until the next join heals it.
		s.trouble(map[bool]int{true: -1, false: 1}[was])
	}
	s.stands, s.until = v, time.Now().Add(pinLife)
	s.past = append(s.past, moment{at: time.Now(), stands: v})
}

// swap is the compare-and-set, and says whether it wrote; a claim is one on nothing. Only a claim is carried out when nobody
// waits for it any more.
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

// get is GET, and GETEX when it prolongs.
func (s *store) get(prolong bool) value {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.now()
	if prolong && !found.absent() {
		s.until = time.Now().Add(pinLife)
	}
	return found
}

// lapse lets the pin expire after d, as that of a room does which has been empty for all the life of a pin. One that somebody
// has just asked for is not so old.
func (s *store) lapse(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked := s.until.Add(-pinLife); !s.now().absent() && time.Since(asked) > time.Second {
		s.until = time.Now().Add(d)
	}
}

// forget empties the store, as a restart without persistence does.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(value{})
	s.memory = 0
	s.lost()
	s.record.lose("the store restarted empty", value{}, s.record.now(), s.record.now())
}

// rollBack loses the writes of the last d, as a failover to a replica does.
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

// incarnation is the marker; one that is missing is begun.
func (s *store) incarnation(begin bool) pin.Incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == 0 && begin {
		s.last++
		s.memory = s.last
	}
	return s.memory
}

// damage overwrites the pin with a text that is none.
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

// answer is v as a store's methods return it.
func answer(v value) (pin.Pin, error) {
	if v.raw != "" {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: v.raw, Why: pin.ErrCorrupt}
	}
	return v.pin, nil
}
