package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Holder is the SFU: what it holds, and how it is told of a higher pin.
type Holder interface {
	// Held lists the rooms that are open here with the pins they were opened under.
	Held() []pin.Holding
	// Outrank hands the peers of room over and closes it: higher stands. It must not block.
	Outrank(room ring.RoomID, higher pin.Pin)
}

// Keeps is the store of pins as an owner sees it.
type Keeps interface {
	// Refresh prolongs the pins of the rooms held and says what stands for each, in the
	// order given. It never overwrites a foreign pin (though it prolongs it); a
	// missing one is written again, epoch kept. A returned error means that nothing is known.
	Refresh(ctx context.Context, held []pin.Holding) ([]pin.Found, error)
	// Swap and Repair are those of Claims.
	Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (current pin.Pin, err error)
	Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (current pin.Pin, err error)
}

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
	// Three refreshes fit into the 15 s for which a confirmation counts, so one lost refresh changes nothing.
	return KeeperConfig{RefreshEvery: 5 * time.Second}
}

// Keeper keeps the pins of one SFU node's rooms. Its methods may be called from any goroutine.
type Keeper struct {
	pins  Keeps
	rooms Holder
	cfg   KeeperConfig
	log   *slog.Logger
}

// NewKeeper returns a keeper; Run does its periodic work.
func NewKeeper(pins Keeps, rooms Holder, cfg KeeperConfig, log *slog.Logger) *Keeper {
	return &Keeper{pins: pins, rooms: rooms, cfg: cfg, log: log}
}

// Run refreshes the pins until ctx ends, and at once after a pause of the process.
func (k *Keeper) Run(_ context.Context) error { return errUnbuilt }

// Confirm returns nil when p is known to stand for room: it was confirmed in the last
// 15 s, or the store says so now, or the store is unreachable while this node sees a gossip
// majority. Otherwise the error is a *pin.FencedError (the Holder has been told) or
// wraps pin.ErrUnconfirmed. Call it before opening a room and before taking a new peer.
func (k *Keeper) Confirm(_ context.Context, _ ring.RoomID, _ pin.Pin) error { return errUnbuilt }
