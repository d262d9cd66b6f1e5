package failover

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	firstCall    = 250 * time.Millisecond
	latestCall   = time.Second
	fenceTimeout = time.Second
)

// tellReturned calls every gone boot that has not been told of all its moves. It does not wait for gossip: a process
// that wakes serves its rooms before gossip sees it.
func (f *Failover) tellReturned(ctx context.Context, owned *sync.WaitGroup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, boot := range f.moves.pending() {
		if _, running := f.tracked[boot]; running {
			continue
		}
		f.tracked[boot] = struct{}{}
		owned.Go(func() {
			f.catch("telling a node that is back broke: it begins anew", func() { f.follow(ctx, boot) }, "boot", boot)
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.tracked, boot)
		})
	}
}

// follow calls one boot until it knows of all its lost rooms, or a newer boot of the node answers.
func (f *Failover) follow(ctx context.Context, boot pin.BootID) {
	call := backoff.Backoff{First: firstCall, Most: latestCall}
	for backoff.Sleep(ctx, f.spread(call.Next())) {
		node, control, lost := f.moves.untold(boot)
		if len(lost) == 0 {
			return
		}
		hello, err := f.nodes.HelloAt(ctx, control)
		switch {
		case err != nil || hello.Node != node:
			continue
		case hello.Boot.Newer(boot):
			f.moves.forget(boot)
			return
		case hello.Boot == boot:
			f.fence(ctx, boot, control, lost)
		}
	}
}

func (f *Failover) fence(ctx context.Context, boot pin.BootID, control string, lost []pin.Holding) {
	for _, h := range lost {
		ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
		held, err := f.nodes.Outrank(ctx, control, h.Room, h.Pin, false)
		cancel()
		if err != nil {
			return
		}
		f.moves.tell(moveKey{h.Room, boot}, h.Pin.Fence)
		f.log.Info("returned node fenced", "room", h.Room, "boot", boot, "held", held, "epoch", h.Pin.Fence.Epoch)
	}
}
