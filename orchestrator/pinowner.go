package orchestrator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// OpenRooms is the SFU: what it holds, and how it is told of a higher pin.
type OpenRooms interface {
	// Held lists the rooms that are open here with the pins they were opened under.
	Held() []pin.Holding
	// Fence fences room: higher stands, so its peers are handed over and it is closed. It must not block.
	// The room may not be open here.
	Fence(room ring.RoomID, higher pin.Pin)
}

// LeaseStore is the store of pins as an owner sees it.
type LeaseStore interface {
	// Refresh returns what stands for each of the rooms held, in the order given, and prolongs the pins that are due.
	// It never overwrites a foreign pin, though it may prolong it. A missing pin is written again, epoch kept.
	// An error means that nothing is known.
	Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error)
	// Incarnations returns the present incarnation of every master that takes writes, and an error when
	// there are others. Pins that are synced afterwards stand in these or later ones.
	Incarnations(ctx context.Context) ([]pin.Incarnation, error)
	// Swap is that of PinStore.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, in pin.Incarnation, err error)
	// Prolong returns the pin that stands, or none, and has it expire as late as a new one. It writes nothing.
	Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error)
}

const (
	// confirmedFor is how long a confirmation counts: three refreshes, so that a short store outage stops nobody.
	confirmedFor = 15 * time.Second
	// pauseGap: a process whose heartbeat is this late was stopped, and may have been declared dead. A false alarm
	// costs one refresh.
	heartbeatEvery = 250 * time.Millisecond
	pauseGap       = time.Second
	// majorityRestsFor: after a pause the view of the gossip is as old as the pause, and takes some probe rounds to renew.
	majorityRestsFor = 10 * time.Second
	// retryEvery is how often an owner looks whether a store is back: an empty one needs its pins before many people join.
	retryEvery = 200 * time.Millisecond
	// checkEvery is how often an owner reads the store's incarnations. Until it notices a data loss, joins are
	// verified one by one, and a room that the loss put on two nodes stays there.
	checkEvery = time.Second
	// silentFor is how long the store must be silent before a majority stands in for it: one lost answer is no outage.
	silentFor = 3 * time.Second
	// recheckAfter is how soon the pin of a room that Confirm let open is read again: it may move between the two.
	recheckAfter = 100 * time.Millisecond
	// reclaimFor is how long after the last prolonging an owner reclaims its room from a fresh pin: the life of a
	// pin. Until then the key can be gone only because the store forgot, or a sweep took this process for dead.
	reclaimFor = time.Hour
	// refreshTimeout bounds one refresh of all rooms, confirmTimeout the check of one.
	refreshTimeout = 2 * time.Second
	confirmTimeout = 300 * time.Millisecond
)

// PinOwnerConfig is how often pins are refreshed and what to do without a store.
type PinOwnerConfig struct {
	// RefreshEvery is the mean time between refreshes.
	RefreshEvery time.Duration
	// ProlongEvery is how often a pin is prolonged. It is a small part of a pin's life, an hour. Other refreshes only read.
	ProlongEvery time.Duration
	// Majority reports whether this node sees a majority of the cluster in gossip. While the store is
	// unreachable an owner takes new peers only if so. nil means no.
	Majority func() bool
}

// DefaultPinOwnerConfig is what the binary uses; Majority is left to the caller.
func DefaultPinOwnerConfig() PinOwnerConfig {
	// Two refreshes may be lost before a confirmation lapses.
	return PinOwnerConfig{RefreshEvery: 5 * time.Second, ProlongEvery: 10 * time.Minute}
}

// PinOwner keeps the pins of one SFU node's rooms. Its methods may be called from any goroutine.
type PinOwner struct {
	pins  LeaseStore
	rooms OpenRooms
	cfg   PinOwnerConfig
	log   *slog.Logger
	kick  chan struct{} // plan has changed; more than once is the same
	cache pinCache      // the highest pin of each room that was confirmed here

	mu        sync.Mutex // guards the fields below
	confirmed map[ring.RoomID]confirmation
	opening   map[ring.RoomID][]*opening // rooms about to open
	synced    pin.Incarnations
	plan      schedule
	heard     time.Time // when all masters last took writes and no pin of ours was in doubt
	fastUntil time.Time // until when refreshes come every checkEvery
	heartbeat time.Time // the last sign that this process was running
	paused    time.Time // when a pause was last noticed
	pauses    uint64    // how many; an answer that spans one confirms nothing
}

// confirmation is when the store last said that a pin stands.
type confirmation struct {
	pin       pin.Pin
	at        time.Time // when the question was asked, not when it was answered
	prolonged time.Time // when the pin, or a lower one of ours, was last prolonged
}

// NewPinOwner returns a pin owner; Run does its periodic work.
func NewPinOwner(pins LeaseStore, rooms OpenRooms, cfg PinOwnerConfig, log *slog.Logger) *PinOwner {
	return &PinOwner{
		pins: pins, rooms: rooms, cfg: cfg, log: log,
		kick: make(chan struct{}, 1), confirmed: make(map[ring.RoomID]confirmation), opening: make(map[ring.RoomID][]*opening),
	}
}

// Synced returns the incarnations of the store in which all pins of this node stand, for the node's load report. It
// returns none when the store was not heard for 15 s: a pin that is not prolonged expires.
func (own *PinOwner) Synced() pin.Incarnations {
	own.mu.Lock()
	defer own.mu.Unlock()
	if elapsed(own.heard, time.Now()) > confirmedFor {
		return ""
	}
	return own.synced
}
