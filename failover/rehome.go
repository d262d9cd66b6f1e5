package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	firstRetry         = 25 * time.Millisecond
	latestRetry        = 2 * time.Second
	decideTimeout      = 3 * time.Second
	delayLogsPerSecond = 0.1
)

var (
	errBack  = errors.New("the node is back and keeps the room")
	errLower = errors.New("the store holds no higher pin yet")
)

type move struct {
	room LocalRoom
	from pin.Pin
	to   pin.Pin
	// again is set if the room has moved before, but its clients were not told.
	again bool
	// told is set when the clients know that the move is delayed.
	told  bool
	trace traces.Span
}

func (m *move) key() moveKey { return moveKey{m.room.Room, m.room.Pin.Boot} }

// carryOut moves a room, however long the store takes. It gives up when no sockets are left here or the node is back.
// The semaphore's slot would be lost by a panic before advance uses it, so nothing here may panic before that call.
func (f *Failover) carryOut(ctx context.Context, m *move, slot *waiter) {
	started := time.Now()
	pause := backoff.Backoff{First: firstRetry, Most: latestRetry}
	for tries := 1; ; tries++ {
		err := f.advance(ctx, m, slot, started)
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case errors.Is(err, errBack):
			f.log.Info("room stays", "room", m.room.Room, "node", m.from.Node, "reason", err)
			return
		}
		// The store was silent, no node had headroom, or the stored pin was not higher. The move waits and tries
		// again.
		again := f.spread(pause.Next())
		f.config.Metrics.Delayed()
		f.logDelay(m, err, again)
		if !m.told {
			m.told = true
			f.rooms.Delayed(m.room.Room, err)
		}
		if !backoff.Sleep(ctx, again) || !f.stillWanted(m) {
			return
		}
		slot = f.storeSlots.queue(tries, m.room.Peers)
	}
}

func (f *Failover) announce(m *move) {
	if m.again {
		f.log.Warn("room not mapped yet: telling the clients again", "room", m.room.Room, "to", m.to.Node, "epoch", m.to.Fence.Epoch)
		return
	}
	f.log.Info("room re-homing", "room", m.room.Room, "from", m.from.Node, "epoch", m.from.Fence.Epoch)
}

// advance makes one try of a move: it gets a new pin, unless the last try has got one, and tells the clients.
func (f *Failover) advance(ctx context.Context, m *move, slot *waiter, started time.Time) error {
	if m.to.IsZero() {
		to, err := f.decide(ctx, m, slot)
		if err != nil {
			return err
		}
		m.to = to
		f.log.Info("room re-homed", "room", m.room.Room, "to", to.Node, "epoch", to.Fence.Epoch, "took_ms", milliseconds(time.Since(started)))
	}
	if err := f.outlived(m); err != nil {
		return err
	}
	// The move is remembered before the clients are told, so that no reconciliation meanwhile begins it a second
	// time.
	f.moves.add(m.room.Room, m.room.Pin, m.to)
	f.moves.add(m.room.Room, m.from, m.to)
	failpoint.Hit("notify.before")
	f.rooms.Moved(ctx, m.room.Room, m.to)
	m.trace.Event("clients told")
	if !m.again {
		f.config.Metrics.Rehomed(time.Since(started))
		f.log.Info("clients told to restart", "room", m.room.Room, "peers", m.room.Peers)
	}
	return nil
}

// outlived returns an error if the target has died, too. The move then goes on from the target's pin, so that clients
// hear of one move only.
func (f *Failover) outlived(m *move) error {
	if !f.gone(m.to.Boot) {
		return nil
	}
	dead := m.to
	m.from, m.to, m.again = dead, pin.Pin{}, false
	f.announce(m)
	return fmt.Errorf("node %s, where the room went, is gone too", dead.Node)
}

func (f *Failover) decide(ctx context.Context, m *move, slot *waiter) (pin.Pin, error) {
	if err := f.storeSlots.acquire(ctx, slot); err != nil {
		return pin.Pin{}, err
	}
	defer f.storeSlots.release()
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	if !f.gone(m.from.Boot) {
		return pin.Pin{}, errBack
	}
	to, err := f.rehomer.Rehome(ctx, m.room.Room, m.from, m.room.Expect)
	if err == nil && !m.from.Fence.Less(to.Fence) {
		return pin.Pin{}, fmt.Errorf("%w than %s", errLower, m.from.Fence)
	}
	return to, err
}

func (f *Failover) stillWanted(m *move) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.wanted[m.key()]
	return ok || !f.gone(m.room.Pin.Boot)
}

func (f *Failover) logDelay(m *move, err error, again time.Duration) {
	if _, ok := f.delayLogs.Next(); ok {
		f.mu.Lock()
		waiting := len(f.active)
		f.mu.Unlock()
		f.log.Warn("room re-homing delayed", "room", m.room.Room, "error", err, "again", again, "rooms", waiting)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
