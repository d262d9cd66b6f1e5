package failover

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	// A process that was frozen answers within this time of its return. A refused dial every
	// second for each boot that lost rooms, for an hour at most, costs nothing.
	firstCall  = 250 * time.Millisecond
	latestCall = time.Second
	// outrankTimeout bounds one message to a process that may freeze again.
	outrankTimeout = time.Second
)

// tellReturned follows every boot that lost rooms until it has been told of them. It does not wait
// for gossip to see it again: a process that was frozen believes in its rooms from its first
// instruction on.
func (f *Failover) tellReturned(ctx context.Context, owned *sync.WaitGroup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, boot := range f.moves.pending() {
		if _, running := f.tracked[boot]; running {
			continue
		}
		f.tracked[boot] = struct{}{}
		owned.Go(func() {
			f.follow(ctx, boot)
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.tracked, boot)
		})
	}
}

// follow calls a boot until it answers and has been told of every room it lost, until a newer
// process answers in its place, or until its moves are too old to matter.
func (f *Failover) follow(ctx context.Context, boot pin.BootID) {
	call := backoff{first: firstCall, most: latestCall}
	for sleep(ctx, f.spread(call.next())) {
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
			f.outrank(ctx, boot, control, lost)
		}
	}
}

// outrank tells a boot of the rooms it lost. What could not be said is said at the next call.
func (f *Failover) outrank(ctx context.Context, boot pin.BootID, control string, lost []pin.Holding) {
	for _, h := range lost {
		ctx, cancel := context.WithTimeout(ctx, outrankTimeout)
		held, err := f.nodes.Outrank(ctx, control, h.Room, h.Pin)
		cancel()
		if err != nil {
			return
		}
		f.moves.tell(moveKey{h.Room, boot}, h.Pin.Fence)
		f.log.Info("returned node outranked", "room", h.Room, "boot", boot, "held", held, "epoch", h.Pin.Fence.Epoch)
	}
}
