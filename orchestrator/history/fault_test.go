package history

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

func (w *world) hold(c *caller, reasons *atomic.Int32, long time.Duration) {
	w.oracle.disturbance(1)
	reasons.Add(1)
	_ = c.pause(context.Background(), long)
	reasons.Add(-1)
	w.oracle.disturbance(-1)
}

// kill ends a media node. Each signaling node learns of it later, and moves the room if its peers were there.
func (w *world) kill(s *sfu) {
	s.mu.Lock()
	alive := s.alive
	s.mu.Unlock()
	if !alive {
		return
	}
	s.kill()
	for _, e := range w.everySignaling() {
		told := newCaller(w.seed, e.name+" told of a death", w.lateID())
		w.running.Go(func() {
			_ = told.pause(context.Background(), told.between(5*time.Millisecond, 1500*time.Millisecond))
			e.lost(s.boot)
			e.rescue(told, s.boot)
		})
	}
}

// rescue re-homes the room if this signaling node's peers were on a dead boot.
func (e *signalingNode) rescue(c *caller, boot pin.BootID) {
	e.mu.Lock()
	from := e.at
	e.mu.Unlock()
	if from.IsZero() || from.Boot != boot {
		return
	}
	for range maxTries {
		to, err := e.ask(c, kindRehome, from)
		if err == nil {
			e.join(c, to)
			return
		}
		_ = c.pause(context.Background(), c.between(50*time.Millisecond, 200*time.Millisecond))
	}
}

// removableAfter is longer than any claim is under way.
const removableAfter = 2 * time.Second

// sweep removes the pin if its boot is taken for dead here.
func (e *signalingNode) sweep(c *caller) {
	ctx, cancel := context.WithTimeout(c.with(context.Background()), time.Second)
	defer cancel()
	found, ok, err := e.link.Get(ctx, room)
	if !ok || err != nil || int64(found.Fence.Epoch) > time.Now().Add(-removableAfter).UnixMilli() || e.View().Gone[found.Boot] == "" {
		return
	}
	_ = c.pause(ctx, c.between(0, 100*time.Millisecond))
	c.tried, c.signaling, c.what, c.about, c.why = nil, e, kindSweep, found, e.begin(kindSweep, found)
	defer func() {
		e.end(c.why)
		c.signaling, c.why = nil, nil
	}()
	_, _, _ = e.link.Swap(ctx, room, found, pin.Pin{}, "")
}

func (w *world) welcome(s *sfu) {
	for _, e := range w.everySignaling() {
		told := newCaller(w.seed, e.name+" told of a boot", w.lateID())
		w.running.Go(func() {
			_ = told.pause(context.Background(), told.between(5*time.Millisecond, 1500*time.Millisecond))
			s.mu.Lock()
			alive := s.alive
			s.mu.Unlock()
			if alive {
				e.joined(s.node())
				e.mu.Lock()
				at := e.at
				e.mu.Unlock()
				if at.Node == s.id && s.boot.Newer(at.Boot) {
					e.rescue(told, at.Boot)
				}
			}
		})
	}
}

// suspect makes a signaling node take a live node for dead, mostly the one with its peers.
func (w *world) suspect(c *caller, e *signalingNode, long time.Duration) {
	e.mu.Lock()
	boot := e.at.Boot
	e.mu.Unlock()
	if c.chance(40) {
		boot = w.current(c.random.IntN(3)).boot
	}
	if boot == "" {
		return
	}
	e.lost(boot)
	e.rescue(c, boot)
	_ = c.pause(context.Background(), long)
	live, _ := w.truth()
	for _, s := range live {
		if s.boot == boot {
			e.joined(s.node())
		}
	}
}

func (w *world) full(c *caller, s *sfu, long time.Duration) {
	set := func(full bool) {
		s.mu.Lock()
		s.full = full
		s.mu.Unlock()
	}
	set(true)
	_ = c.pause(context.Background(), long)
	set(false)
}

// leave empties the room: its pin expires if nobody comes back.
func (w *world) leave() {
	for _, s := range w.nodes() {
		s.mu.Lock()
		s.held, s.peers = pin.Pin{}, nil
		s.mu.Unlock()
		w.oracle.servesNoMore(s.boot)
	}
	for _, e := range w.everySignaling() {
		e.mu.Lock()
		e.at = pin.Pin{}
		e.mu.Unlock()
	}
}
