package failover

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// sweptPerSecond keeps the sweep, for whose rooms nobody waits, out of the way of joins.
	sweptPerSecond = 500
	// scanKey elects the edge that scans.
	scanKey = "scan of all pins"
	// refusalsToJudge is in how many scans in a row an unknown boot must be missing from its
	// address before it counts as gone: gossip may be slow, and so may a process at opening its port.
	refusalsToJudge = 2
	// maxDoubts bounds the unknown boots remembered between two scans; what is beyond it
	// is judged later.
	maxDoubts = 1024
)

// sweeper moves the rooms of departed boots for which no edge holds a socket. It is used
// by one goroutine.
type sweeper struct {
	*Failover

	refused map[pin.BootID]int // scans in a row in which an unknown boot's address was refused
}

// sweepUntilDone scans from time to time, on the elected edge.
func (f *Failover) sweepUntilDone(ctx context.Context) {
	s := &sweeper{Failover: f, refused: map[pin.BootID]int{}}
	scan := time.NewTimer(f.spread(f.config.SweepEvery))
	defer scan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-scan.C:
			s.scan(ctx)
			scan.Reset(f.spread(f.config.SweepEvery))
		}
	}
}

// errStopped ends a scan in which a room could not be moved: the next one begins anew.
var errStopped = errors.New("the sweep was stopped")

// scan looks at every pin there is and moves those whose boot is gone.
func (s *sweeper) scan(ctx context.Context) {
	if !s.membership.View().Settled || !s.elected(scanKey) {
		clear(s.refused)
		return
	}
	judged := map[pin.BootID]bool{} // by this scan: one dial per unknown boot
	refused := map[pin.BootID]int{}
	err := s.pins.AllPins(ctx, func(h pin.Holding) error {
		dead, known := s.judge(h.Pin)
		if !known {
			if dead, known = judged[h.Pin.Boot]; !known {
				dead = s.ask(ctx, h.Pin, refused)
				judged[h.Pin.Boot] = dead
			}
		}
		if dead && !s.moveSwept(ctx, h) {
			return errStopped
		}
		return ctx.Err()
	})
	s.refused = refused
	if err != nil && ctx.Err() == nil {
		s.log.Warn("scan of all pins ended early", "error", err)
	}
}

// judge says what the view knows of the boot of a pin.
func (s *sweeper) judge(p pin.Pin) (dead, known bool) {
	view := s.membership.View()
	if view.Gone[p.Boot] != "" {
		return true, true
	}
	live, ok := view.Nodes[p.Node]
	switch {
	case ok && live.Boot == p.Boot:
		return false, true
	case ok && live.Boot.Newer(p.Boot):
		return true, true
	default:
		return false, false
	}
}

// ask dials the address in the pin of an unknown boot, for unknown is not dead. A
// newer boot of its node proves its death; a refusal, or another node at its address, does
// in the second scan in a row.
func (s *sweeper) ask(ctx context.Context, p pin.Pin, refused map[pin.BootID]int) (dead bool) {
	hello, err := s.nodes.HelloAt(ctx, p.Control)
	if err == nil && hello.Node == p.Node {
		return hello.Boot.Newer(p.Boot)
	}
	if (err != nil && !errors.Is(err, control.ErrRefused)) || len(refused) >= maxDoubts {
		return false
	}
	refused[p.Boot] = s.refused[p.Boot] + 1
	return refused[p.Boot] >= refusalsToJudge
}

// moveSwept moves one room and reports whether the sweep can go on. A room of which this edge
// holds sockets is left to its own move, which knows more and tells the clients.
func (s *sweeper) moveSwept(ctx context.Context, h pin.Holding) bool {
	if s.moving(moveKey{h.Room, h.Pin.Boot}) {
		return true
	}
	if !sleep(ctx, time.Second/sweptPerSecond) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	to, err := s.rehomer.Rehome(bounded, h.Room, h.Pin, headroom.Room{})
	if err != nil {
		s.log.Warn("sweep put off", "room", h.Room, "from", h.Pin.Node, "error", err)
		return false
	}
	if h.Pin.Fence.Less(to.Fence) {
		s.moves.add(h.Room, h.Pin, to)
		s.log.Info("room swept", "room", h.Room, "from", h.Pin.Node, "to", to.Node, "epoch", to.Fence.Epoch)
	}
	return true
}

// moving reports whether this edge moves the room itself.
func (s *sweeper) moving(key moveKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, active := s.active[key]
	_, wanted := s.wanted[key]
	return active || wanted
}

// elected reports whether this edge is the one that does what key names.
func (s *sweeper) elected(key string) bool {
	winner, ok := ring.Rendezvous(s.edges(), key)
	return ok && winner == s.config.Self
}
