package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// MemoryStore is a store in memory that fails as a test wants. The tests of redisstore hold the real stores to the
// same contract.
type MemoryStore struct {
	mu    sync.Mutex
	texts map[ring.RoomID]string
	last  map[ring.RoomID]pin.Fence
	// changes has the newest change first.
	changes map[ring.RoomID][]pin.Change
	// fault is what Fault returns.
	fault string
	// err is the error of every call.
	err error
	// With deny, writes fail.
	deny      bool
	prolonged []time.Time
	slow      time.Duration
	calls     int
	in        pin.Incarnation
	// before runs before each call, without the lock held.
	before func()
}

// NewMemoryStore returns an empty store in incarnation 1.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{texts: make(map[ring.RoomID]string), last: make(map[ring.RoomID]pin.Fence), in: 1}
}

var errDenied = errors.New("NOREPLICAS not enough good replicas to write")

// RefuseWrites makes the store refuse writes, as a server without replicas does.
func (s *MemoryStore) RefuseWrites(deny bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = deny
}

func (s *MemoryStore) write(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deny {
		return errDenied
	}
	return nil
}

func (s *MemoryStore) enter(ctx context.Context) error {
	s.mu.Lock()
	slow, err, before := s.slow, s.err, s.before
	s.calls++
	s.mu.Unlock()
	if before != nil {
		before()
	}
	if slow > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slow):
		}
	}
	return err
}

func (s *MemoryStore) set(room ring.RoomID, p pin.Pin) {
	if s.fault == "" && !s.last[room].Less(p.Fence) {
		s.fault = fmt.Sprintf("room %s: %v was written after %v", room, p.Fence, s.last[room])
	}
	s.texts[room], s.last[room] = p.Encode(), p.Fence
}

// Put writes a text past every rule. An empty text deletes.
func (s *MemoryStore) Put(room ring.RoomID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[room] = text
	if text == "" {
		delete(s.texts, room)
	}
}

// Stands returns the text under the room's key, or nothing.
func (s *MemoryStore) Stands(room ring.RoomID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[room]
}

// Meanwhile has before run ahead of every call.
func (s *MemoryStore) Meanwhile(before func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// Fail makes every call return err.
func (s *MemoryStore) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Incarnation returns the present incarnation.
func (s *MemoryStore) Incarnation() pin.Incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in
}

// Lose forgets everything and begins another incarnation.
func (s *MemoryStore) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.texts)
	clear(s.last)
	s.in++
}

func read(room ring.RoomID, text string) (pin.Pin, error) {
	p, err := pin.Parse(text)
	if errors.Is(err, pin.ErrLater) {
		return pin.Pin{}, err
	}
	if err != nil {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: text, Why: err}
	}
	return p, nil
}

// Claim is SET NX GET.
func (s *MemoryStore) Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	if err := s.write(ctx); err != nil {
		return pin.Pin{}, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.texts[room]; ok {
		stands, err := read(room, text)
		return stands, s.in, err
	}
	s.set(room, p)
	if why != "" {
		s.note(room, pin.Change{Epoch: p.Fence.Epoch, To: p.Node, Why: why})
	}
	return p, s.in, nil
}

// Enter admits everybody.
func (s *MemoryStore) Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, _ waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	stands, in, err := s.Claim(ctx, room, p, why)
	return stands, in, waitlist.Answer{Outcome: waitlist.Admitted}, err
}

// Incarnations returns the incarnation of the one master.
func (s *MemoryStore) Incarnations(context.Context) ([]pin.Incarnation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.deny:
		return nil, errDenied
	default:
		return []pin.Incarnation{s.in}, nil
	}
}

// Swap is a compare-and-set of a pin.
func (s *MemoryStore) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	stands, err := s.replace(ctx, room, old.Encode(), next, pin.Change{From: old.Node, Why: why})
	return stands, s.Incarnation(), err
}

// History returns the changes, the newest first.
func (s *MemoryStore) History(_ context.Context, room ring.RoomID) ([]pin.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes[room]), nil
}

// Repair is a compare-and-set of any text.
func (s *MemoryStore) Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	return s.replace(ctx, room, raw, next, pin.Change{Why: pin.WhyDamaged})
}

func (s *MemoryStore) replace(ctx context.Context, room ring.RoomID, raw string, next pin.Pin, noted pin.Change) (pin.Pin, error) {
	if err := s.write(ctx); err != nil {
		return pin.Pin{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.texts[room]
	if !ok {
		return pin.Pin{}, nil
	}
	if text != raw {
		return read(room, text)
	}
	s.set(room, next)
	noted.Epoch, noted.To = next.Fence.Epoch, next.Node
	s.note(room, noted)
	return next, nil
}

// note adds a change to the room's history. The caller holds mu.
func (s *MemoryStore) note(room ring.RoomID, noted pin.Change) {
	if s.changes == nil {
		s.changes = make(map[ring.RoomID][]pin.Change)
	}
	noted.At = time.Now()
	changes := slices.Insert(s.changes[room], 0, noted)
	s.changes[room] = changes[:min(len(changes), pin.MaxChanges)]
}

// Get returns the room's pin. The second value is false if there is none.
func (s *MemoryStore) Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error) {
	if err := s.enter(ctx); err != nil {
		return pin.Pin{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.texts[room]
	if !ok {
		return pin.Pin{}, false, nil
	}
	p, err := read(room, text)
	return p, err == nil, err
}

// Prolong is GETEX.
func (s *MemoryStore) Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	p, _, err := s.Get(ctx, room)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.deny {
		return pin.Pin{}, errDenied
	}
	s.prolonged = append(s.prolonged, time.Now())
	return p, err
}

// Refresh reads the pins, prolongs those that are due and writes the missing ones.
func (s *MemoryStore) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]pin.Found, len(held))
	for i, h := range held {
		found[i].Room, found[i].Prolonged = h.Room, due(h)
		text, ok := s.texts[h.Room]
		if s.deny && (!ok || found[i].Prolonged) {
			found[i].Err = errDenied
			continue
		}
		if found[i].Prolonged {
			s.prolonged = append(s.prolonged, time.Now())
		}
		if !ok {
			s.texts[h.Room], found[i].Rewritten = h.Pin.Encode(), true
			text = s.texts[h.Room]
		}
		found[i].Stands, found[i].Err = read(h.Room, text)
	}
	return found, nil
}

// StartIn sets the incarnation.
func (s *MemoryStore) StartIn(in pin.Incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = in
}

// Slow delays every call by d.
func (s *MemoryStore) Slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = d
}

// Calls returns how many calls there were.
func (s *MemoryStore) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Fault returns the first write that did not fence the one before, or nothing.
func (s *MemoryStore) Fault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Prolonged returns the times at which pins were prolonged since the last call of Prolonged.
func (s *MemoryStore) Prolonged() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.prolonged
	s.prolonged = nil
	return list
}
