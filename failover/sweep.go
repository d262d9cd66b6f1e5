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
	// sweptPerSecond keeps the sweep out of the way of joins.
	sweptPerSecond = 500
	// scanKey elects the signaling node that scans.
	scanKey = "scan of all pins"
	// scansToRemove scans in a row, rescanAfter apart, must find a boot dead: signaling nodes with
	// sockets move their rooms first, and a process may be slow to open its port.
	scansToRemove = 2
	rescanAfter   = 5 * time.Second
	// maxSuspects bounds the dead boots remembered between scans.
	maxSuspects = 1024
)

// sweeper removes the pins of dead boots whose rooms nobody moves. One goroutine uses it.
type sweeper struct {
	*Failover

	suspects map[pin.BootID]int // scans in a row in which a boot was found dead
}

// sweepUntilDone scans at intervals, on the elected signaling node.
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

func (s *sweeper) pause() time.Duration {
	for _, scans := range s.suspects {
		if scans < scansToRemove {
			return min(rescanAfter, s.config.SweepEvery)
		}
	}
	return s.config.SweepEvery
}

// scan removes the pins of boots that scansToRemove scans found dead. Signaling nodes with sockets in
// such a room have moved it by then, or claim it above the removed pin.
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

// isDead asks a boot that the view does not have live at its address. A newer boot, another node or a
// refusal there prove its death. Silence does only if the boot was seen to go: unknown is not dead.
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
