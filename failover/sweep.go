package failover

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// The sweep is slow, because joins need the store more.
	sweptPerSecond = 500
	scanKey        = "scan of all pins"
	// One scan is no proof: the signaling nodes that have sockets move their rooms first, and a new process may not
	// listen yet.
	scansToRemove = 2
	rescanAfter   = 5 * time.Second
	// sweepEvery is an average: each pause is drawn around it.
	sweepEvery  = 30 * time.Second
	maxSuspects = 1024
)

type sweeper struct {
	*Failover

	suspects map[pin.BootID]int
}

func (f *Failover) sweepUntilDone(ctx context.Context) {
	s := &sweeper{Failover: f, suspects: map[pin.BootID]int{}}
	scan := time.NewTimer(f.spread(sweepEvery))
	defer scan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-scan.C:
			s.catch("a scan of all pins broke", func() { s.scan(ctx) })
			scan.Reset(f.spread(s.pause()))
		}
	}
}

func (s *sweeper) pause() time.Duration {
	for _, scans := range s.suspects {
		if scans < scansToRemove {
			return rescanAfter
		}
	}
	return sweepEvery
}

// scan removes the pins of dead boots, if this node is elected for it. A room that is joined again is claimed with an
// epoch above the removed pin's.
func (s *sweeper) scan(ctx context.Context) {
	view, before := s.membership.View(), s.suspects
	s.suspects = map[pin.BootID]int{}
	if elected, ok := ring.Rendezvous(s.signalingNodes(), scanKey); !view.Settled || !ok || elected != s.config.Self {
		return
	}
	// checked has the answer for each boot, so that a boot is dialled once in a scan.
	checked := map[pin.BootID]bool{}
	removed := 0
	err := s.pins.AllPins(ctx, func(h pin.Holding) error {
		dead, known := checked[h.Pin.Boot]
		if !known {
			dead = s.isDead(ctx, view, h.Pin)
			checked[h.Pin.Boot] = dead
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

// isDead reports whether the pin's boot is proven dead: another process answers at its address, or the dial is
// refused. Silence proves nothing, unless the view has seen the boot depart.
func (s *sweeper) isDead(ctx context.Context, view *cluster.View, p pin.Pin) bool {
	liveness := view.Liveness(p.Node, p.Boot)
	if liveness == cluster.Live || liveness == cluster.Replaced {
		return liveness == cluster.Replaced
	}
	hello, err := s.nodes.HelloAt(ctx, p.Control)
	switch {
	case err == nil && hello.Node == p.Node:
		return hello.Boot.Newer(p.Boot)
	case err == nil, errors.Is(err, control.ErrRefused):
		return true
	default:
		return liveness == cluster.Departed
	}
}

func (s *sweeper) remove(ctx context.Context, h pin.Holding) (gone bool, err error) {
	if !backoff.Sleep(ctx, time.Second/sweptPerSecond) {
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
