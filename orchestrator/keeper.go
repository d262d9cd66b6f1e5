package orchestrator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Holder is the SFU: what it holds, and how it is told of a higher pin.
type Holder interface {
	// Held lists the rooms that are open here with the pins they were opened under.
	Held() []pin.Holding
	// Outrank hands the peers of room over and closes it: higher stands. It must not block, and
	// must be able to hear of a room that is not open here.
	Outrank(room ring.RoomID, higher pin.Pin)
}

// Keeps is the store of pins as an owner sees it.
type Keeps interface {
	// Refresh prolongs the pins of the rooms held and says what stands for each, in the
	// order given. It never overwrites a foreign pin (though it prolongs it); a
	// missing one is written again, epoch kept. A returned error means that nothing is known.
	Refresh(ctx context.Context, held []pin.Holding) ([]pin.Found, error)
	// Generations returns the present generation of every master of the store. Pins that are
	// asserted afterwards stand in these or later ones.
	Generations(ctx context.Context) ([]pin.Generation, error)
	// Swap and Get are those of Claims.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, err error)
	Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error)
}

const (
	// confirmedFor is how long a confirmation counts. An edge needs at least about a second
	// of suspicion to re-home a room of a live process, but the store may be away for longer
	// than that while both sides keep serving; 15 s is three refreshes.
	confirmedFor = 15 * time.Second
	// beatEvery and pauseGap: a process whose ticker was late by this much was stopped, or its
	// machine was, and may have been declared dead meanwhile. A busy machine can cause a
	// false alarm, which costs one refresh.
	beatEvery = 250 * time.Millisecond
	pauseGap  = time.Second
	// majorityRestsFor: after a pause our picture of the gossip is as old as the pause, and
	// it takes some probe rounds to be refuted.
	majorityRestsFor = 10 * time.Second
	// retryEvery is how soon a refresh that failed is tried again: a store that came back empty
	// should have its pins before many people join.
	retryEvery = 200 * time.Millisecond
	// lookEvery is how often an owner looks whether the store still has the memory in which its pins
	// were asserted: a read of one key. Until an owner has noticed a loss, joins are proven one by one, and a room
	// that a loss put on two nodes stays on both.
	lookEvery = time.Second
	// recheckAfter is how soon a room is looked at again that Confirm let open: whatever happened to its pin between the
	// two would else be noticed by the next refresh only. Rooms that open meanwhile share the look.
	recheckAfter = 100 * time.Millisecond
	// contestFor is how long ago the store may have confirmed a pin whose owner stands up against a
	// fresh one: as long as a pin lives there. Up to then the key can only be gone because the store forgot.
	contestFor = time.Hour
	// refreshTimeout bounds one refresh of all rooms, confirmTimeout the check of one.
	refreshTimeout = 2 * time.Second
	confirmTimeout = 300 * time.Millisecond
)

// KeeperConfig is how often pins are refreshed and what to do without a store.
type KeeperConfig struct {
	// RefreshEvery is the mean time between refreshes, spread by a tenth either way so
	// that the nodes of a cluster do not refresh in step.
	RefreshEvery time.Duration
	// Majority reports whether this node sees a majority of the cluster in gossip. While
	// the store is unreachable an owner takes new peers only if so. nil means no.
	Majority func() bool
}

// DefaultKeeperConfig is what the binary uses; Majority is left to the caller.
func DefaultKeeperConfig() KeeperConfig {
	// Two refreshes may be lost before a confirmation lapses.
	return KeeperConfig{RefreshEvery: 5 * time.Second}
}

// Keeper keeps the pins of one SFU node's rooms. Its methods may be called from any goroutine.
type Keeper struct {
	pins  Keeps
	rooms Holder
	cfg   KeeperConfig
	log   *slog.Logger
	kick  chan struct{} // plan has changed; more than once is the same
	seen  seen          // the highest pin of each room that was confirmed here

	mu        sync.Mutex // guards the fields below
	confirmed map[ring.RoomID]confirmation
	opening   map[ring.RoomID]confirmation // pins that Confirm was asked for lately: rooms about to open
	asserted  pin.Generations
	plan      agenda
	beat      time.Time // the last sign that this process was running
	paused    time.Time // when a pause was last noticed
	pauses    uint64    // how many; an answer that spans one confirms nothing
}

// agenda is when Run does what next. Zero is never.
type agenda struct {
	refresh time.Time
	recheck time.Time // of the rooms that opened a moment ago
	look    time.Time // whether the store has lost its memory
}

// next is the first instant of the agenda.
func (a agenda) next() time.Time {
	first := a.refresh
	for _, at := range []time.Time{a.recheck, a.look} {
		if !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// confirmation is when the store last said that a pin stands.
type confirmation struct {
	pin pin.Pin
	at  time.Time // when the question was asked, not when it was answered
}

// NewKeeper returns a keeper; Run does its periodic work.
func NewKeeper(pins Keeps, rooms Holder, cfg KeeperConfig, log *slog.Logger) *Keeper {
	return &Keeper{
		pins: pins, rooms: rooms, cfg: cfg, log: log,
		kick: make(chan struct{}, 1), confirmed: make(map[ring.RoomID]confirmation), opening: make(map[ring.RoomID]confirmation),
	}
}

// Run refreshes the pins until ctx ends, and at once after a pause of the process or when the store
// has lost its memory. It returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Go(func() { k.watchPauses(ctx) })
	defer watch.Wait()
	failing := false
	timer := time.NewTimer(0) // The first refresh is due now: rooms may have been opened before Run.
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-k.kick:
		}
		now, plan := time.Now(), k.planned()
		switch {
		case !now.Before(plan.refresh), !now.Before(plan.look) && !failing && !k.remembers(ctx):
			err := k.refresh(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if (err != nil) != failing { // One line per change, not one per failure.
				failing = err != nil
				k.log.Warn("refresh of pins", "failing", failing, "error", err)
			}
			k.refreshed(failing)
		case !now.Before(plan.look):
			k.looked()
		case !plan.recheck.IsZero() && !now.Before(plan.recheck):
			k.recheck(ctx)
		}
		timer.Reset(time.Until(k.planned().next()))
	}
}

// planned returns the agenda.
func (k *Keeper) planned() agenda {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.plan
}

// refreshed plans what comes after a refresh.
func (k *Keeper) refreshed(failed bool) {
	wait := retryEvery
	if !failed {
		// A tenth more or less, so that the nodes of a cluster do not refresh in step. It is taken from the source of
		// nonces: a test that knows those has the whole schedule.
		wait = time.Duration(float64(k.cfg.RefreshEvery) * (0.9 + 0.2*float64(pin.NewNonce())/(1<<63)))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.plan.refresh, k.plan.look = now.Add(wait), now.Add(lookEvery)
}

// looked plans the next look at the store's memory.
func (k *Keeper) looked() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan.look = time.Now().Add(lookEvery)
}

// hurry wakes Run up for a new agenda.
func (k *Keeper) hurry() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// remembers reports whether the store has the memory in which all pins of this node were asserted last.
func (k *Keeper) remembers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	present, err := k.pins.Generations(ctx)
	return err == nil && pin.GenerationsOf(present) == k.Asserted()
}

// Asserted returns the generations of the store in which all pins of this node stand. It belongs
// into the node's load report.
func (k *Keeper) Asserted() pin.Generations {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asserted
}

// watchPauses notices when this process was not running. It is apart from the refresh, which
// may wait for the store for longer than a pause is.
func (k *Keeper) watchPauses(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		k.noticePause()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// noticePause takes all confirmations back when the time since the last beat shows a pause. It
// looks at both clocks: the monotonic one stands still while a machine is suspended, and
// the other may be set.
func (k *Keeper) noticePause() {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	gap := max(now.Sub(k.beat), now.Round(0).Sub(k.beat.Round(0)))
	first := k.beat.IsZero()
	k.beat = now
	if first || gap <= pauseGap {
		return
	}
	clear(k.confirmed)
	k.paused = now
	k.pauses++
	k.plan.refresh = now
	k.hurry()
	k.log.Warn("this process was paused, every pin must be confirmed again", "gap_ms", gap.Milliseconds())
}
