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
	// Refresh says what stands for each of the rooms held, in the order given, and prolongs the pins of those that are
	// due. It never overwrites a foreign pin (though it may prolong it); a
	// missing one is written again, epoch kept. A returned error means that nothing is known.
	Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error)
	// Generations returns the present generation of every master of the store that takes writes, and an error
	// when there are others. Pins that are asserted afterwards stand in these or later ones.
	Generations(ctx context.Context) ([]pin.Generation, error)
	// Swap is that of Claims.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, in pin.Generation, err error)
	// Prolong returns the pin that stands, and none when there is none. It writes nothing, but what
	// it returns does not expire before it has lived as long as a new one.
	Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error)
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
	// retryEvery is how often an owner looks whether a store that was away is back: one that came back empty
	// should have its pins before many people join.
	retryEvery = 200 * time.Millisecond
	// lookEvery is how often an owner looks whether the store still has the memory in which its pins
	// were asserted: a read of one key. Until an owner has noticed a loss, joins are proven one by one, and a room
	// that a loss put on two nodes stays on both.
	lookEvery = time.Second
	// silentFor is for how long the store must not have been heard by this node before a majority stands in for it: one answer that
	// is lost, or late, is no outage, and whoever asked asks again. A store is heard when it takes writes and every pin of this node was
	// confirmed in the last refresh: one that refuses writes is as good as dead for an owner. Of a Redis Cluster all masters must be
	// heard: the one that has the room in question may be the one that is dead.
	silentFor = 3 * time.Second
	// recheckAfter is how soon a room is looked at again that Confirm let open: whatever happened to its pin between the
	// two would else be noticed by the next refresh only. Rooms that open meanwhile share the look.
	recheckAfter = 100 * time.Millisecond
	// contestFor is how long ago the store may have prolonged a pin whose owner stands up against a
	// fresh one: as long as a pin lives there. Up to then the key is gone because the store forgot, or because
	// a sweep took this process for dead.
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
	// ProlongEvery is how often a pin is prolonged, at a moment of its own: the other refreshes only read it. It is
	// a small part of the life of a pin in the store, an hour.
	ProlongEvery time.Duration
	// Majority reports whether this node sees a majority of the cluster in gossip. While
	// the store is unreachable an owner takes new peers only if so. nil means no.
	Majority func() bool
}

// DefaultKeeperConfig is what the binary uses; Majority is left to the caller.
func DefaultKeeperConfig() KeeperConfig {
	// Two refreshes may be lost before a confirmation lapses.
	return KeeperConfig{RefreshEvery: 5 * time.Second, ProlongEvery: 10 * time.Minute}
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
	opening   map[ring.RoomID][]*opening // rooms about to open
	asserted  pin.Generations
	plan      agenda
	heard     time.Time // when all masters of the store last took writes, no pin of ours being in doubt
	restless  time.Time // until when refreshes come every lookEvery
	beat      time.Time // the last sign that this process was running
	paused    time.Time // when a pause was last noticed
	pauses    uint64    // how many; an answer that spans one confirms nothing
}

// confirmation is when the store last said that a pin stands.
type confirmation struct {
	pin       pin.Pin
	at        time.Time // when the question was asked, not when it was answered
	prolonged time.Time // when the pin, or a lower one of ours, was last prolonged
}

// NewKeeper returns a keeper; Run does its periodic work.
func NewKeeper(pins Keeps, rooms Holder, cfg KeeperConfig, log *slog.Logger) *Keeper {
	return &Keeper{
		pins: pins, rooms: rooms, cfg: cfg, log: log,
		kick: make(chan struct{}, 1), confirmed: make(map[ring.RoomID]confirmation), opening: make(map[ring.RoomID][]*opening),
	}
}

// Asserted returns the generations of the store in which all pins of this node stand, and none when the store has not
// been heard for 15 s: a pin that is not prolonged expires. It belongs into the node's load report.
func (k *Keeper) Asserted() pin.Generations {
	k.mu.Lock()
	defer k.mu.Unlock()
	if elapsed(k.heard, time.Now()) > confirmedFor {
		return ""
	}
	return k.asserted
}
