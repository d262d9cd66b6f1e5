package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	// firstRetry and latestRetry space the attempts of one room while the store is down. When it
	// is back, the last rooms move two seconds later at most.
	firstRetry  = 25 * time.Millisecond
	latestRetry = 2 * time.Second
	// decideTimeout bounds one attempt, which the orchestrator bounds more tightly: a place at
	// the gate must come back whatever happens.
	decideTimeout = 3 * time.Second
	// complaintsPerSecond bounds the log lines about attempts that failed.
	complaintsPerSecond = 0.1
)

// The reasons for which a move ends, or an attempt fails, without a new pin.
var (
	errBack  = errors.New("the node is back and keeps the room")
	errLower = errors.New("the store holds no higher pin yet")
)

// move is one room on its way from one boot to wherever it lives next.
type move struct {
	room  LocalRoom
	from  pin.Pin // the pin that is being replaced
	to    pin.Pin // the pin that stands; zero while that is undecided
	again bool    // moved before, but the edge did not map it
}

func (m *move) key() moveKey { return moveKey{m.room.Room, m.room.Pin.Boot} }

// carryOut moves one room and tells its clients, however long the store takes. It gives up only
// when ctx ends, when the room has no sockets here any more (the sweep moves it then), or
// when the node came back before the room was moved.
func (f *Failover) carryOut(ctx context.Context, m *move, turn *ticket) {
	started := time.Now()
	pause := backoff{first: firstRetry, most: latestRetry}
	if !m.to.IsZero() {
		turn.abandon() // Nothing to ask the store.
	}
	f.announce(m)
	for {
		err := f.advance(ctx, m, turn, started)
		switch {
		case err == nil:
			return
		case ctx.Err() != nil:
			return
		case errors.Is(err, errBack):
			f.log.Info("room stays", "room", m.room.Room, "node", m.from.Node, "reason", err)
			return
		}
		again := f.spread(pause.next())
		f.complain(m, err, again)
		if !sleep(ctx, again) || !f.stillWanted(m) {
			return
		}
		turn = f.gate.queue(m.room.Peers)
	}
}

// announce logs the beginning of a move.
func (f *Failover) announce(m *move) {
	if m.again {
		f.log.Warn("room not mapped yet: telling the edge again", "room", m.room.Room, "to", m.to.Node, "epoch", m.to.Fence.Epoch)
		return
	}
	f.log.Info("room re-homing", "room", m.room.Room, "from", m.from.Node, "epoch", m.from.Fence.Epoch)
}

// advance takes a move as far as it goes. An error says why it has to be tried again.
func (f *Failover) advance(ctx context.Context, m *move, turn *ticket, started time.Time) error {
	if m.to.IsZero() {
		to, err := f.decide(ctx, m, turn)
		if err != nil {
			return err
		}
		m.to = to
		f.log.Info("room re-homed", "room", m.room.Room, "to", to.Node, "epoch", to.Fence.Epoch, "took_ms", milliseconds(time.Since(started)))
	}
	if err := f.holdBack(ctx, m); err != nil {
		return err
	}
	// Remembered before the clients are told, so that a look in between cannot begin anew.
	f.moves.add(m.room.Room, m.room.Pin, m.to)
	f.moves.add(m.room.Room, m.from, m.to) // another boot, when the first target died
	failpoint.Hit("notify.before")
	f.rooms.Moved(ctx, m.room.Room, m.to)
	if !m.again {
		f.log.Info("clients told to restart", "room", m.room.Room, "peers", m.room.Peers)
	}
	return nil
}

// holdBack waits until the target can take the room's clients. A target that dies meanwhile ends the
// wait: the room moves on from there, and its clients hear of one move only.
func (f *Failover) holdBack(ctx context.Context, m *move) error {
	wait := f.pacer.reserve(time.Now(), m.to.Boot, m.room.Peers, len(f.edges()))
	died := f.deathOf(m.to.Boot)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-died:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !f.gone(m.to.Boot) {
		return nil
	}
	dead := m.to
	m.from, m.to, m.again = dead, pin.Pin{}, false
	f.announce(m)
	return fmt.Errorf("node %s, where the room went, is gone too", dead.Node)
}

// decide finds out where the room lives now, moving it if nobody has.
func (f *Failover) decide(ctx context.Context, m *move, turn *ticket) (pin.Pin, error) {
	if err := turn.enter(ctx); err != nil {
		return pin.Pin{}, err
	}
	defer turn.leave()
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

// stillWanted reports whether the room has local sockets mapped to the lost boot, as
// of the last look. One whose boot is back goes on until it hears that.
func (f *Failover) stillWanted(m *move) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.wanted[m.key()]
	return ok || !f.gone(m.room.Pin.Boot)
}

// complain logs a failed attempt: few lines for all rooms together, or a store that is down
// would fill the log with every room of a node.
func (f *Failover) complain(m *move, err error, again time.Duration) {
	if f.complaints.Allow() {
		f.mu.Lock()
		waiting := len(f.active)
		f.mu.Unlock()
		f.log.Warn("room re-homing delayed", "room", m.room.Room, "error", err, "again", again, "rooms", waiting)
	}
}

// milliseconds is how logs and the page count: a fraction of a millisecond is
// still worth seeing.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
