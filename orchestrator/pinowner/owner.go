// Package pinowner is the media node's side of placement: it keeps the pins of the node's rooms alive, says before a room
// opens whether its pin stands, learns of higher pins, and reclaims rooms that the store forgot.
//
// It does not know Redis, gossip or media: it is given a store (LeaseStore) and the open rooms (OpenRooms).
// orchestrator/DESIGN.md has the invariants and the races.
package pinowner

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// OpenRooms are the open rooms of the media node.
type OpenRooms interface {
	// Held lists the open rooms with their pins.
	Held() []pin.Holding
	// Fence tells of a higher pin of a room, which need not be open. If the pin names another node, the room ends
	// here. Fence must not block.
	Fence(room ring.RoomID, higher pin.Pin)
}

// LeaseStore is the store as a pin owner uses it.
type LeaseStore interface {
	// Refresh returns the current pin of each room of held. It renews the life of those that are due, writes missing
	// pins again, and overwrites none. After an error nothing is known. The error of a single Found may be
	// pin.ErrUnreachable.
	Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error)
	// Incarnations returns the incarnations of all masters that take writes, and an error if some do not. Later
	// writes go to these incarnations or to later ones.
	Incarnations(ctx context.Context) ([]pin.Incarnation, error)
	// Swap is the Swap of orchestrator.PinStore.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (current pin.Pin, in pin.Incarnation, err error)
	// Prolong renews the life of the current pin and returns that pin, or the zero pin if there is none.
	Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error)
}

// Rosters writes the rosters of the open rooms to the store.
type Rosters interface {
	// Renew writes the room's roster again. It must not block.
	Renew(room ring.RoomID)
	// Prolong makes the roster live as long as its pin, whose life was renewed. After a pause all pins are renewed at
	// once, so it must cost nothing if the roster was written lately. It must not block.
	Prolong(room ring.RoomID)
	// Rewrite writes all rosters again. After an error the store may lack some of them; if the error is
	// pin.ErrUnreachable, only those of unreachable masters.
	Rewrite(ctx context.Context) error
}

const (
	// A confirmation counts for the time of three refreshes.
	confirmedFor   = 15 * time.Second
	heartbeatEvery = 250 * time.Millisecond
	pauseGap       = time.Second
	// The view is old for some probe rounds after a pause, so the majority is not trusted for this long.
	majorityRestsFor = 10 * time.Second
	retryEvery       = 200 * time.Millisecond
	checkEvery       = time.Second
	silentFor        = 3 * time.Second
	recheckAfter     = 100 * time.Millisecond
	// An owner may reclaim a room for the length of a pin's life.
	reclaimFor     = time.Hour
	refreshTimeout = 2 * time.Second
	// The incarnations have a time of their own, so that a silent master does not use up the time of the whole
	// refresh.
	incarnationsTimeout = time.Second
	confirmTimeout      = 300 * time.Millisecond
)

// Config has its reasons in DefaultConfig.
type Config struct {
	// RefreshEvery is the mean time between two refreshes.
	RefreshEvery time.Duration
	// ProlongEvery is after how long a pin's life is renewed. It is a small part of that life.
	ProlongEvery time.Duration
	// Majority reports whether gossip sees a majority of the cluster, which replaces a silent store. If it is nil,
	// nothing does.
	Majority func() bool
	// Rosters are written again before the node is synced. They may be nil.
	Rosters Rosters
	// Panics counts the caught panics. If it is nil, New makes a guard of its own.
	Panics *panics.Guard
}

// DefaultConfig has the values of the binary. Majority, Rosters and Panics are left to the caller.
func DefaultConfig() Config {
	// Two refreshes may be lost before a confirmation lapses.
	return Config{RefreshEvery: 5 * time.Second, ProlongEvery: 10 * time.Minute}
}

// Owner keeps the pins of one media node. It is safe for concurrent use. The fields below mu are guarded by mu.
type Owner struct {
	pins  LeaseStore
	rooms OpenRooms
	cfg   Config
	log   *slog.Logger
	// A value in kick wakes Run.
	kick  chan struct{}
	cache pincache.Cache

	laterLogs *loglimit.Limiter

	mu        sync.Mutex
	confirmed map[ring.RoomID]confirmation
	opening   map[ring.RoomID][]*opening
	synced    synced
	plan      schedule
	fastUntil time.Time
	// adopting is set if at the last refresh a room had not adopted its higher pin.
	adopting  bool
	heartbeat time.Time
	paused    time.Time
	// pauses counts the pauses of this process. An answer to a question from before a pause confirms nothing.
	pauses uint64
}

type confirmation struct {
	pin pin.Pin
	// at is when the question was asked, not when the answer came.
	at        time.Time
	prolonged time.Time
}

// New starts nothing: Run does the refreshing.
func New(pins LeaseStore, rooms OpenRooms, cfg Config, log *slog.Logger) *Owner {
	cfg.Panics = cmp.Or(cfg.Panics, panics.New())
	if cfg.Rosters == nil {
		cfg.Rosters = noRosters{}
	}
	return &Owner{
		pins: pins, rooms: rooms, cfg: cfg, log: log,
		kick: make(chan struct{}, 1), laterLogs: loglimit.New(1.0/60, 1), confirmed: make(map[ring.RoomID]confirmation), opening: make(map[ring.RoomID][]*opening),
		synced: synced{heard: make(map[pin.Incarnation]time.Time)},
	}
}

type noRosters struct{}

func (noRosters) Renew(ring.RoomID)             {}
func (noRosters) Prolong(ring.RoomID)           {}
func (noRosters) Rewrite(context.Context) error { return nil }
