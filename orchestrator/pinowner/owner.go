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

// OpenRooms are the media node's.
type OpenRooms interface {
	// Held lists them with their pins.
	Held() []pin.Holding
	// Fence hands room, which may not be open, over to higher. It must not block.
	Fence(room ring.RoomID, higher pin.Pin)
}

// LeaseStore is a pin owner's store.
type LeaseStore interface {
	// Refresh returns the current pin of each held. It prolongs due pins, writes missing ones again, and overwrites
	// none. After an error nothing is known; a Found's may be pin.ErrUnreachable.
	Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error)
	// Incarnations returns those of all masters that take writes; an error: some do not. Later writes are in these or
	// later ones.
	Incarnations(ctx context.Context) ([]pin.Incarnation, error)
	// Swap is orchestrator.PinStore's.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (current pin.Pin, in pin.Incarnation, err error)
	// Prolong renews the current pin's life, and returns the pin or none.
	Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error)
}

// Rosters are open rooms' rosters in the store.
type Rosters interface {
	// Renew writes one again. It must not block.
	Renew(room ring.RoomID)
	// Prolong has one live as long as its pin, which was prolonged. A pause has all pins prolonged at once, so it must
	// cost nothing where the roster was written lately. It must not block.
	Prolong(room ring.RoomID)
	// Rewrite writes all. After an error the store may lack some: only unreachable masters if it is pin.ErrUnreachable.
	Rewrite(ctx context.Context) error
}

const (
	// Three refreshes.
	confirmedFor   = 15 * time.Second
	heartbeatEvery = 250 * time.Millisecond
	pauseGap       = time.Second
	// After a pause the view is old for some probe rounds.
	majorityRestsFor = 10 * time.Second
	retryEvery       = 200 * time.Millisecond
	checkEvery       = time.Second
	silentFor        = 3 * time.Second
	recheckAfter     = 100 * time.Millisecond
	// A pin's life.
	reclaimFor     = time.Hour
	refreshTimeout = 2 * time.Second
	// The rest of a refresh has its own time: a silent master uses up this one.
	incarnationsTimeout = time.Second
	confirmTimeout      = 300 * time.Millisecond
)

// Config has its reasons in DefaultConfig.
type Config struct {
	// RefreshEvery is a mean.
	RefreshEvery time.Duration
	// ProlongEvery is a small part of a pin's life.
	ProlongEvery time.Duration
	// Majority reports a gossip majority, which replaces a silent store; nil: never.
	Majority func() bool
	// Rosters are rewritten before the node is synced; nil: none.
	Rosters Rosters
	// Panics counts panics; nil: its own.
	Panics *panics.Guard
}

// DefaultConfig leaves Majority, Rosters and Panics to the caller.
func DefaultConfig() Config {
	// Two refreshes may be lost before a confirmation lapses.
	return Config{RefreshEvery: 5 * time.Second, ProlongEvery: 10 * time.Minute}
}

// Owner is a media node's. It is safe for concurrent use.
type Owner struct {
	pins  LeaseStore
	rooms OpenRooms
	cfg   Config
	log   *slog.Logger
	kick  chan struct{} // wakes Run
	cache pincache.Cache

	laterLogs *loglimit.Limiter

	mu        sync.Mutex
	confirmed map[ring.RoomID]confirmation
	opening   map[ring.RoomID][]*opening
	synced    synced
	plan      schedule
	fastUntil time.Time
	adopting  bool // at the last refresh a room had not adopted its higher pin
	heartbeat time.Time
	paused    time.Time
	pauses    uint64 // an answer across one confirms nothing
}

type confirmation struct {
	pin       pin.Pin
	at        time.Time // of the question
	prolonged time.Time
}

// New needs Run.
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
