package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
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
	room  LocalRoom
	from  pin.Pin
	to    pin.Pin
	again bool // moved before, but clients did not
	told  bool // of the delay
}

func (m *move) key() moveKey { return moveKey{m.room.Room, m.room.Pin.Boot} }

// carryOut moves a room, however long the store takes. It gives up when no sockets are left or the node is back.
// A panic before turn is used would lose turn.
func (f *Failover) carryOut(ctx context.Context, m *move, turn *waiter) {
	started := time.Now()
	pause := backoff.Backoff{First: firstRetry, Most: latestRetry}
	for tries := 1; ; tries++ {
		err := f.advance(ctx, m, turn, started)
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case errors.Is(err, errBack):
			f.log.Info("room stays", "room", m.room.Room, "node", m.from.Node, "reason", err)
			return
		}
		again := f.spread(pause.Next())
		f.logDelay(m, err, again)
		if !m.told {
			m.told = true
			f.rooms.Delayed(m.room.Room, err)
		}
		if !backoff.Sleep(ctx, again) || !f.stillWanted(m) {
			return
		}
		turn = f.storeSlots.queue(tries, m.room.Peers)
	}
}

func (f *Failover) announce(m *move) {
	if m.again {
		f.log.Warn("room not mapped yet: telling the clients again", "room", m.room.Room, "to", m.to.Node, "epoch", m.to.Fence.Epoch)
		return
	}
	f.log.Info("room re-homing", "room", m.room.Room, "from", m.from.Node, "epoch", m.from.Fence.Epoch)
}

func (f *Failover) advance(ctx context.Context, m *move, turn *waiter, started time.Time) error {
	if m.to.IsZero() {
		to, err := f.decide(ctx, m, turn)
		if err != nil {
			return err
		}
		m.to = to
		f.log.Info("room re-homed", "room", m.room.Room, "to", to.Node, "epoch", to.Fence.Epoch, "took_ms", milliseconds(time.Since(started)))
	}
	if err := f.outlived(m); err != nil {
		return err
	}
	// First, so that no reconciliation begins anew.
	f.moves.add(m.room.Room, m.room.Pin, m.to)
	f.moves.add(m.room.Room, m.from, m.to)
	failpoint.Hit("notify.before")
	f.rooms.Moved(ctx, m.room.Room, m.to)
	if !m.again {
		f.log.Info("clients told to restart", "room", m.room.Room, "peers", m.room.Peers)
	}
	return nil
}

// Clients hear of one move, even if the target is gone too.
func (f *Failover) outlived(m *move) error {
	if !f.gone(m.to.Boot) {
		return nil
	}
	dead := m.to
	m.from, m.to, m.again = dead, pin.Pin{}, false
	f.announce(m)
	return fmt.Errorf("node %s, where the room went, is gone too", dead.Node)
}

func (f *Failover) decide(ctx context.Context, m *move, turn *waiter) (pin.Pin, error) {
	if err := f.storeSlots.acquire(ctx, turn); err != nil {
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
