package history

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// refreshEvery is a mean.
const refreshEvery = 5 * time.Second

// sfu is one boot of a media node: the real pinowner.Owner, and the rules of package sfu.
type sfu struct {
	world      *world
	id         ring.NodeID
	boot       pin.BootID
	link       *link
	caller     *caller // of its pin owner
	owner      *pinowner.Owner
	stop       context.CancelFunc
	ended      chan struct{}
	unanswered atomic.Int32 // reasons for silence

	mu    sync.Mutex // guards the fields below
	alive bool
	full  bool // refuses rooms
	held  pin.Pin
	peers map[string]bool
	stone pin.Fence // never served at or below it again
	top   pin.Fence // ever served under
}

type reply string

const (
	replyServed      reply = "served"
	replyFenced      reply = "fenced"
	replyRefused     reply = "refused to open"
	replyUnconfirmed reply = "unconfirmed"
	replyGone        reply = "unreachable or another boot"
)

func (s *sfu) node() cluster.Node {
	return cluster.Node{
		ID: s.id, Boot: s.boot, Role: cluster.RoleSFU, Control: address(s.id),
		Load: cluster.Load{Seq: 1, Synced: s.owner.Synced(), CeilingBitsPerSecond: 1 << 40, CeilingPacketsPerSecond: 1 << 30},
	}
}

func address(id ring.NodeID) string { return string(id) + ".test:7000" }

func (s *sfu) start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(s.caller.with(ctx))
	s.alive, s.ended = true, make(chan struct{})
	cfg := pinowner.Config{RefreshEvery: refreshEvery, ProlongEvery: pinLife / 4}
	if s.world.faults.trust {
		cfg.Majority = func() bool { return true }
	}
	s.owner = pinowner.New(&owning{s}, s, cfg, quiet)
	go func() {
		defer close(s.ended)
		_ = s.owner.Run(ctx) // It returns nil.
	}()
}

// kill leaves requests under way.
func (s *sfu) kill() {
	s.mu.Lock()
	s.alive, s.held, s.peers = false, pin.Pin{}, nil
	s.mu.Unlock()
	s.world.oracle.servesNoMore(s.boot)
	s.stop()
}

// report sends load reports while the process lives.
func (s *sfu) report() {
	c := newCaller(s.world.seed, string(s.boot)+" reports", s.caller.id+50)
	for {
		_ = c.pause(context.Background(), time.Second)
		s.mu.Lock()
		alive := s.alive
		s.mu.Unlock()
		if !alive || s.world.over.Load() {
			return
		}
		for _, e := range s.world.everySignaling() {
			e.reported(s.node())
		}
	}
}

// Held is of OpenRooms.
func (s *sfu) Held() []pin.Holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.IsZero() {
		return nil
	}
	return []pin.Holding{{Room: room, Pin: s.held}}
}

// Fence is of OpenRooms.
func (s *sfu) Fence(_ ring.RoomID, higher pin.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := higher.Node == s.id && higher.Boot == s.boot
	switch {
	case !s.alive || !s.held.IsZero() && !s.held.Fence.Less(higher.Fence):
		return
	case ours && !s.held.IsZero():
		s.serve(higher)
	case !ours:
		if s.stone.Less(higher.Fence) {
			s.stone = higher.Fence
		}
		if !s.held.IsZero() {
			s.held, s.peers = pin.Pin{}, nil
			s.world.oracle.servesNoMore(s.boot)
			s.world.handedOver(s.boot, higher.Fence)
		}
	}
}

// serve needs mu.
func (s *sfu) serve(p pin.Pin) {
	if p.Fence.Less(s.top) {
		s.world.record.fault("%s served under %v, and then under %v", s.boot, s.top, p.Fence)
	}
	s.top, s.held = p.Fence, p
	s.world.oracle.serving(s.boot, p)
}

// attach lets a peer in, as package sfu does.
func (s *sfu) attach(ctx context.Context, p pin.Pin, peer string) (reply, pin.Fence) {
	if p.Boot != s.boot {
		return replyGone, pin.Fence{}
	}
	confirmed, forOpening := false, false
	for {
		s.mu.Lock()
		switch {
		case !s.alive:
			s.mu.Unlock()
			return replyGone, pin.Fence{}
		case p.Fence.Less(s.held.Fence):
			defer s.mu.Unlock()
			return replyFenced, s.held.Fence
		case s.held.IsZero() && !s.stone.Less(p.Fence):
			defer s.mu.Unlock()
			return replyFenced, s.stone
		case s.held.IsZero() && s.full:
			s.mu.Unlock()
			return replyRefused, pin.Fence{}
		case confirmed && (forOpening || !s.held.IsZero()), !s.held.IsZero() && s.peers[peer]: // It was for an open room.
			defer s.mu.Unlock()
			if s.peers == nil {
				s.peers = make(map[string]bool)
			}
			s.peers[peer] = true
			s.serve(p)
			return replyServed, pin.Fence{}
		}
		forOpening = s.held.IsZero()
		s.mu.Unlock()
		if refused, current := s.confirm(ctx, p); refused != replyServed {
			return refused, current
		}
		confirmed = true
	}
}

const confirmedFor = 15 * time.Second

// confirm asks the pin owner, and records what it says.
func (s *sfu) confirm(ctx context.Context, p pin.Pin) (reply, pin.Fence) {
	c, call := asking(ctx), s.world.record.now()
	c.asked, c.failed = false, false
	s.mu.Lock()
	opens := s.held.IsZero()
	s.mu.Unlock()
	err := s.owner.Confirm(ctx, room, p)
	if err == nil && opens && !c.asked {
		s.world.record.fault("%s opens the room under %v without asking the store", s.boot, p.Fence)
	}
	in := input{kind: kindConfirm, who: c.who, pin: p}
	var fenced *pin.FencedError
	switch {
	case err == nil && c.failed: // The store's answer is not known.
		s.world.record.refused("confirmed by a majority")
		s.world.oracle.vouchedFor(p)
		return replyServed, pin.Fence{}
	case err == nil:
		if !c.asked { // From an earlier answer.
			call -= int64(confirmedFor)
		}
		s.world.record.add(in, output{pin: p}, call, s.world.record.now())
		return replyServed, pin.Fence{}
	case errors.As(err, &fenced) && (c.failed || !c.asked):
		return replyFenced, fenced.Current.Fence // It remembers a higher one.
	case errors.As(err, &fenced):
		s.world.record.add(in, output{pin: fenced.Current, fenced: true}, call, s.world.record.now())
		return replyFenced, fenced.Current.Fence
	case errors.Is(err, pin.ErrMissing):
		s.world.record.add(in, output{missing: true}, call, s.world.record.now())
		return replyFenced, pin.Fence{}
	default:
		s.world.record.refused("unconfirmed")
		return replyUnconfirmed, pin.Fence{}
	}
}

// owning records the pin owner's exchanges with the store.
type owning struct{ s *sfu }

func (o *owning) keep(ctx context.Context, ours pin.Pin, ask func() (pin.Pin, error)) {
	c, call := asking(ctx), o.s.world.record.now()
	before := len(c.tried)
	c.asked = true
	stands, err := ask()
	if err == nil {
		in := input{kind: kindKeep, who: string(o.s.boot) + ", " + c.who, pin: ours, tried: c.tried[before:]}
		o.s.world.record.add(in, output{pin: stands}, call, o.s.world.record.now())
	}
}

// Incarnations is of LeaseStore.
func (o *owning) Incarnations(ctx context.Context) ([]pin.Incarnation, error) {
	ctx, cancel := o.bounded(ctx)
	defer cancel()
	return o.s.link.Incarnations(ctx)
}

// refreshLimit ends an exchange before the pin owner's own limit, which counts from an instant that is not the
// seed's.
const refreshLimit = 350 * time.Millisecond

func (o *owning) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if asking(ctx) != o.s.caller {
		return context.WithCancel(ctx)
	}
	own := time.Duration(o.s.caller.id) // Otherwise two give up at one instant, in any order.
	return context.WithTimeout(context.WithoutCancel(ctx), refreshLimit+own)
}

// Refresh is of LeaseStore.
func (o *owning) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) (found []pin.Found, err error) {
	o.keep(ctx, held[0].Pin, func() (pin.Pin, error) { // One room.
		ctx, cancel := o.bounded(ctx)
		defer cancel()
		if found, err = o.s.link.Refresh(ctx, held, due); err != nil {
			return pin.Pin{}, err
		}
		return found[0].Stands, found[0].Err
	})
	return found, err
}

// Swap is of LeaseStore.
func (o *owning) Swap(ctx context.Context, r ring.RoomID, old, next pin.Pin, why string) (stands pin.Pin, in pin.Incarnation, err error) {
	o.keep(ctx, next, func() (pin.Pin, error) {
		ctx, cancel := o.bounded(ctx)
		defer cancel()
		stands, in, err = o.s.link.Swap(ctx, r, old, next, why)
		return stands, err
	})
	return stands, in, err
}

// Prolong is of LeaseStore.
func (o *owning) Prolong(ctx context.Context, r ring.RoomID) (pin.Pin, error) {
	asking(ctx).asked = true
	ctx, cancel := o.bounded(ctx)
	defer cancel()
	return o.s.link.Prolong(ctx, r)
}
