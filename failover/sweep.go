package failover

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// sweptPerSecond keeps the sweep, for whose rooms nobody waits, out of the way of joins.
	sweptPerSecond = 500
	// scanKey elects the edge that scans.
	scanKey = "scan of all pins"
	// scansToRemove is in how many scans in a row a boot must be found dead before its pins are removed, and rescanAfter how soon the second scan comes: the
	// edges that hold sockets move their rooms first, and a process may be slow at opening its port.
	scansToRemove = 2
	rescanAfter   = 5 * time.Second
	// maxSuspects bounds the dead boots remembered between two scans; what is beyond it is judged later.
	maxSuspects = 1024
)

// sweeper removes the pins of dead boots that nobody has moved: the rooms have ended, or nobody is in them. It is used
// by one goroutine.
type sweeper struct {
	*Failover

	suspects map[pin.BootID]int // scans in a row in which a boot was found dead
}

// sweepUntilDone scans from time to time, on the elected edge.
func (f *Failover) sweepUntilDone(ctx context.Context) {
	s := &sweeper{Failover: f, suspects: map[pin.BootID]int{}}
	scan := time.NewTimer(f.spread(f.config.SweepEvery))
	defer scan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-scan.C:
			s.scan(ctx)
			scan.Reset(f.spread(s.pause()))
		}
	}
}

// pause is how long after a scan the next one comes.
func (s *sweeper) pause() time.Duration {
	for _, scans := range s.suspects {
		if scans < scansToRemove {
			return min(rescanAfter, s.config.SweepEvery)
		}
	}
	return s.config.SweepEvery
}

// scan goes through all pins and removes those of boots that were found dead by this scan and the one before it. So the edges that
// hold sockets of such a room have moved it, or will claim it above the pin that is gone; and nothing is reserved for a room
// that nobody is in.
func (s *sweeper) scan(ctx context.Context) {
	view, before := s.membership.View(), s.suspects
	s.suspects = map[pin.BootID]int{}
	if !view.Settled || !s.elected(scanKey) {
		return
	}
	judged := map[pin.BootID]bool{} // one dial per boot
	removed := 0
	err := s.pins.AllPins(ctx, func(h pin.Holding) error {
		dead, known := judged[h.Pin.Boot]
		if !known {
			dead = s.isDead(ctx, view, h.Pin)
			judged[h.Pin.Boot] = dead
			if dead && len(s.suspects) < maxSuspects {
				s.suspects[h.Pin.Boot] = before[h.Pin.Boot] + 1
			}
		}
		if !dead || s.suspects[h.Pin.Boot] < scansToRemove {
			return ctx.Err()
		}
		gone, err := s.remove(ctx, h)
		if gone {
			removed++
		}
		return err
	})
	if removed > 0 {
		s.log.Info("pins of dead nodes removed", "rooms", removed)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("scan of all pins ended early", "error", err)
	}
}

// isDead says whether the boot of a pin is gone. What the view does not hold for alive is asked at its address: a newer boot there proves its death, and so do a
// refusal and another node; silence is the death of a boot that was seen to go, and of no other, for unknown is not dead.
func (s *sweeper) isDead(ctx context.Context, view *cluster.View, p pin.Pin) bool {
	if live, ok := view.Nodes[p.Node]; ok && (live.Boot == p.Boot || live.Boot.Newer(p.Boot)) {
		return live.Boot != p.Boot
	}
	hello, err := s.nodes.HelloAt(ctx, p.Control)
	switch {
	case err == nil && hello.Node == p.Node:
		return hello.Boot.Newer(p.Boot)
	case err == nil, errors.Is(err, control.ErrRefused):
		return true
	default:
		return view.Gone[p.Boot] != ""
	}
}

// remove deletes one pin if it still stands.
func (s *sweeper) remove(ctx context.Context, h pin.Holding) (gone bool, err error) {
	if !sleep(ctx, time.Second/sweptPerSecond) {
		return false, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	gone, err = s.pins.Remove(ctx, h.Room, h.Pin)
	if gone {
		s.log.Debug("pin removed", "room", h.Room, "node", h.Pin.Node, "boot", h.Pin.Boot, "fence", h.Pin.Fence)
	}
	return gone, err
}

// elected reports whether this edge is the one that does what key names.
func (s *sweeper) elected(key string) bool {
	winner, ok := ring.Rendezvous(s.edges(), key)
	return ok && winner == s.config.Self
}
