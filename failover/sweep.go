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
	// Joins need the store.
	sweptPerSecond = 500
	scanKey        = "scan of all pins"
	// Others move their rooms first, and a new process may be slow to listen.
	scansToRemove = 2
	rescanAfter   = 5 * time.Second
	sweepEvery    = 30 * time.Second // on average
	maxSuspects   = 1024
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
			s.survive("a scan of all pins broke", func() { s.scan(ctx) })
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

// A room that is joined again is claimed above the removed pin.
func (s *sweeper) scan(ctx context.Context) {
	view, before := s.membership.View(), s.suspects
	s.suspects = map[pin.BootID]int{}
	if elected, ok := ring.Rendezvous(s.signalingNodes(), scanKey); !view.Settled || !ok || elected != s.config.Self {
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

// Another process or a refusal proves a death. Silence does not.
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
