package failover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// paperNodes is every signaling node's way to call SFU nodes.
type paperNodes struct {
	w *world
	e *signalingNode
}

var errUnreachable = errors.New("no answer")

func (n *paperNodes) at(addr string) *sfuProcess { return n.w.sfus[strings.TrimSuffix(addr, ":1")] }

func (n *paperNodes) Watch(ctx context.Context, addr, _ string, heartbeat func(control.Hello) error) error {
	every := 200 * time.Millisecond
	n.w.mu.Lock()
	if p := n.at(addr); p != nil && p.node.Can(control.CapabilityStandby) {
		every = 100 * time.Millisecond
	}
	n.w.mu.Unlock()
	// The second heartbeat is a little early, so that heartbeats never come in the same instant as a command or a look.
	tick := time.NewTicker(every - 10*time.Millisecond)
	defer tick.Stop()
	on := sync.OnceFunc(func() { tick.Reset(every) })
	for {
		if !n.e.goOn(ctx) {
			return ctx.Err()
		}
		n.w.mu.Lock()
		p := n.at(addr)
		var hello control.Hello
		var broken chan struct{}
		speaks := p != nil && p.running && !p.frozen && !p.mute
		if p != nil {
			hello, broken = control.Hello{Node: p.node.ID, Boot: p.node.Boot}, p.broken
			if !p.running || p.noControl {
				n.w.mu.Unlock()
				return errUnreachable
			}
		}
		n.w.mu.Unlock()
		if speaks {
			if err := heartbeat(hello); err != nil {
				return err
			}
		}
		select {
		case <-broken:
			return errors.New("stream reset")
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			on()
		}
	}
}

func (n *paperNodes) HelloAt(ctx context.Context, addr string) (control.Hello, error) {
	n.w.mu.Lock()
	p := n.at(addr)
	frozen := p != nil && p.running && (p.frozen || p.noAnswer)
	refused := p == nil || !p.running || p.noControl
	n.w.mu.Unlock()
	switch {
	case refused:
		return control.Hello{}, fmt.Errorf("dial %s: %w", addr, control.ErrRefused)
	case frozen:
		backoff.Sleep(ctx, time.Second)
		return control.Hello{}, context.DeadlineExceeded
	default:
		return control.Hello{Node: p.node.ID, Boot: p.node.Boot}, nil
	}
}

func (n *paperNodes) Outrank(_ context.Context, addr string, room ring.RoomID, higher pin.Pin, _ bool) (bool, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	p := n.at(addr)
	if p == nil || !p.running || p.frozen {
		return false, errUnreachable
	}
	fence, held := p.holds[room]
	held = held && fence.Less(higher.Fence)
	if held {
		delete(p.holds, room)
	}
	return held, nil
}

func (n *paperNodes) Forget(string) {}

// paperStore is the store.
type paperStore struct {
	w     *world
	pins  map[ring.RoomID]pin.Pin
	down  bool
	swaps int
}

var errDown = errors.New("store is down")

// trip is one round trip: 1 ms, or 300 ms of waiting for a store that is down.
func (s *paperStore) trip(ctx context.Context) error {
	s.w.mu.Lock()
	down := s.down
	s.w.mu.Unlock()
	if down {
		backoff.Sleep(ctx, 300*time.Millisecond)
		return errDown
	}
	backoff.Sleep(ctx, time.Millisecond)
	return ctx.Err()
}

// paperRehomer is a signaling node's decision where rooms go: of the nodes that it takes for able, the one with the lowest name.
type paperRehomer struct {
	*paperStore
	e       *signalingNode
	planned map[moveKey]int // the people of whom it was told
	moves   int             // of a dead node's rooms
	last    planned
}

// planned is of the last room, in which death.
type planned struct {
	boot   pin.BootID
	people int
	room   ring.RoomID
	moves  int
}

// Plan must be told of all rooms of a death before one moves, the largest first.
func (s *paperRehomer) Plan(room ring.RoomID, from pin.Pin, expect headroom.Room) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	now := planned{from.Boot, expect.People, room, s.moves}
	if was := s.last; was.boot == now.boot && was.moves == now.moves && (now.people > was.people || now.people == was.people && now.room < was.room) {
		s.w.t.Errorf("%s of %d was planned after %s of %d", room, now.people, was.room, was.people)
	}
	s.planned[moveKey{room, from.Boot}], s.last = expect.People, now
}

// choose picks a target. The caller holds mu.
func (s *paperRehomer) choose(not pin.BootID) (target cluster.Node, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(s.e.view.Nodes)) {
		node := s.e.view.Nodes[name]
		if node.Role != cluster.RoleSFU || node.Boot == not || node.Suspect || node.Draining || s.w.sfus[string(name)].full {
			continue
		}
		if !node.Unreachable {
			return node, true
		}
		if !ok {
			target, ok = node, true
		}
	}
	return target, ok
}

func (s *paperRehomer) Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, _ headroom.Room) (pin.Pin, error) {
	if err := s.trip(ctx); err != nil {
		return pin.Pin{}, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if _, told := s.planned[moveKey{room, from.Boot}]; !told && s.e.view.Gone[from.Boot] != "" {
		s.w.t.Errorf("%s moves off %s, and was not planned", room, from.Boot)
	}
	s.moves++
	current, ok := s.pins[room]
	if ok && current != from && s.e.view.Gone[current.Boot] == "" {
		return current, nil
	}
	if ok {
		from = current
	}
	target, ok := s.choose(from.Boot)
	if !ok {
		return pin.Pin{}, errors.New("no SFU node takes rooms")
	}
	s.swaps++
	s.pins[room] = pin.Pin{Fence: pin.Fence{Epoch: from.Fence.Epoch + 1, Nonce: uint64(s.swaps)}, Node: target.ID, Boot: target.Boot, Control: target.Control}
	return s.pins[room], nil
}

// Move finds no headroom on full nodes.
func (s *paperRehomer) Move(ctx context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, _ headroom.Room, _ string) (pin.Pin, error) {
	if to == "" {
		return s.Rehome(ctx, room, from, headroom.Room{})
	}
	if err := s.trip(ctx); err != nil {
		return pin.Pin{}, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	target, live := s.e.view.Nodes[to]
	switch {
	case s.pins[room] != from:
		return s.pins[room], nil
	case !live || s.w.sfus[string(to)].full:
		return pin.Pin{}, errors.New("no headroom")
	}
	s.swaps++
	s.pins[room] = pin.Pin{Fence: pin.Fence{Epoch: from.Fence.Epoch + 1, Nonce: uint64(s.swaps)}, Node: target.ID, Boot: target.Boot, Control: target.Control}
	return s.pins[room], nil
}

func (s *paperStore) Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (bool, error) {
	if err := s.trip(ctx); err != nil {
		return false, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if stands, ok := s.pins[room]; ok && stands != p {
		return false, nil
	}
	delete(s.pins, room)
	return true, nil
}

func (s *paperStore) AllPins(ctx context.Context, visit func(pin.Holding) error) error {
	if err := s.trip(ctx); err != nil {
		return err
	}
	s.w.mu.Lock()
	pins := maps.Clone(s.pins)
	s.w.mu.Unlock()
	for _, room := range slices.Sorted(maps.Keys(pins)) {
		if err := visit(pin.Holding{Room: room, Pin: pins[room]}); err != nil {
			return err
		}
	}
	return nil
}
