// Package failover moves the rooms of a node that is gone, and no others. Each signaling node
// runs one Failover.
//
// It promises:
//   - A process that died on a reachable host is proven dead within milliseconds, by evidence that
//     a drain or a proxy cannot forge, nor a firewall unless it rejects all of the node's ports.
//   - A node that gossip reports dead is believed dead only when it is silent here, too.
//   - Every room with sockets here is moved off a boot that died or left, once, and its clients
//     are told, as soon as the store answers.
//   - One elected signaling node removes the pins of rooms without sockets.
//   - The survivors are not flooded.
//   - A process that was declared dead and comes back is told which rooms it lost.
//
// It does not know where a room goes (Rehomer decides), how clients are told (Rooms does it), the
// store's keys, gossip's messages, or gRPC. DESIGN.md has the evidence, the states of a re-homing,
// and what each crash leaves behind.
package failover

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover/relief"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Membership is *cluster.Cluster.
type Membership interface {
	Subscribe() (events <-chan cluster.Event, cancel func())
	View() *cluster.View
	// ReportDead declares a boot dead by proof; an event follows.
	ReportDead(id ring.NodeID, boot pin.BootID, why string)
	// ConfirmDead does so for a Suspect.
	ConfirmDead(id ring.NodeID, boot pin.BootID, why string)
	// SetUnreachable names boots not heard here.
	SetUnreachable(boots []pin.BootID)
}

// LocalRoom is a room with clients here.
type LocalRoom struct {
	Room   ring.RoomID
	Pin    pin.Pin
	Peers  int           // with sockets here
	Expect headroom.Room // everywhere
}

// Rooms holds clients' sockets. It must be safe for concurrent use.
type Rooms interface {
	LeavingRooms
	// PinnedTo lists a boot's rooms. It is called each second for each lost boot.
	PinnedTo(boot pin.BootID) []LocalRoom
	// Moved tells clients to restart. It ignores unknown rooms and lower pins.
	Moved(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Delayed says once why a room has not moved yet.
	Delayed(room ring.RoomID, why error)
	// Stalled counts peers that receive nothing, 20 times a second. all may be 0 if stalled is.
	Stalled(boot pin.BootID) (stalled, all int)
}

// LeavingRooms leave a live node.
type LeavingRooms interface {
	// MovedLive is Moved while the old node goes on: clients connect first.
	MovedLive(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Settled: no client needs the former node of a room moved live, or the room is not here under that fence.
	Settled(room ring.RoomID, fence pin.Fence) bool
	// Stays says why a room cannot leave a draining node; empty: it can.
	Stays(room ring.RoomID, why string)
}

// Rehomer is *orchestrator.Orchestrator. It chooses where rooms go and writes their pins.
type Rehomer interface {
	// Plan reserves a target for the room of a dead pin. It is told of all rooms before the first of them moves, on all
	// signaling nodes in one order, so that all of them choose alike.
	Plan(room ring.RoomID, from pin.Pin, expect headroom.Room)
	// Rehome replaces the dead pin from and returns the current one, whoever wrote it.
	Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error)
	// Move takes a room off a living node to the node to, or to one of its own choice if to is empty. It returns the
	// current pin, whoever wrote it.
	Move(ctx context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, expect headroom.Room, why string) (pin.Pin, error)
}

// Pins is *redisstore.Store.
type Pins interface {
	// AllPins visits every pin at least once.
	AllPins(ctx context.Context, visit func(pin.Holding) error) error
	// Remove deletes p if it is current and not young.
	Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error)
}

// Nodes is *control.Pool.
type Nodes interface {
	// Watch ends with the stream or heartbeat's error.
	Watch(ctx context.Context, addr, watcher string, heartbeat func(control.Hello) error) error
	// HelloAt uses a new connection. A refusal wraps control.ErrRefused.
	HelloAt(ctx context.Context, addr string) (control.Hello, error)
	// Outrank tells a media node of a higher pin. live: it sends on meanwhile.
	Outrank(ctx context.Context, addr string, room ring.RoomID, higher pin.Pin, live bool) (held bool, err error)
	// Forget closes the pooled connection.
	Forget(addr string)
}

// Config has its reasons in DefaultConfig.
type Config struct {
	// Self is this node.
	Self ring.NodeID
	// Concurrent bounds moves at once.
	Concurrent int
	// AskAfter is the silence before a question. Gossip counts after BelieveAfter, if a question is unanswered for
	// AnswerWithin.
	AskAfter, BelieveAfter, AnswerWithin time.Duration
	// NoRelief leaves rooms on hot nodes.
	NoRelief bool
	// Panics counts panics; nil: its own.
	Panics *panics.Guard
}

// DefaultConfig leaves Self and Panics to the caller.
func DefaultConfig() Config {
	return Config{
		// Some 10,000 rooms a second.
		Concurrent: 16,
		// Three missing heartbeats. Gossip needs about a second.
		AskAfter: 600 * time.Millisecond, BelieveAfter: time.Second, AnswerWithin: 300 * time.Millisecond,
	}
}

// Failover is a signaling node's. Run is called once.
type Failover struct {
	config     Config
	membership Membership
	rooms      Rooms
	rehomer    Rehomer
	pins       Pins
	nodes      Nodes
	log        *slog.Logger

	askMedia func(ctx context.Context, addr string) mediaAnswer
	spread   func(time.Duration) time.Duration
	nap      func(context.Context, time.Duration) bool
	clock    *pauseAwareClock

	delayLogs  *loglimit.Limiter
	storeSlots *prioritySemaphore
	relief     *relief.Relief // nil: none
	moves      *moves
	next       chan struct{}

	mu          sync.Mutex
	active      map[moveKey]struct{}
	wanted      map[moveKey]struct{} // lost rooms
	watched     map[pin.BootID]*watching
	isolated    bool
	known       map[pin.BootID]cluster.Node
	tracked     map[pin.BootID]struct{}
	unreachable []pin.BootID // sorted
	departed    []departure
	leavers     leavers
}

type watching struct {
	node   cluster.Node
	health *peerHealth
	end    func()
}

// New needs a valid config.
func New(config Config, membership Membership, rooms Rooms, rehomer Rehomer, pins Pins, nodes Nodes, log *slog.Logger) *Failover {
	config.Panics = cmp.Or(config.Panics, panics.New())
	f := &Failover{
		config: config, membership: membership, rooms: rooms, rehomer: rehomer, pins: pins, nodes: nodes, log: log,
		askMedia: probeMedia, spread: backoff.Jitter, nap: backoff.Sleep, clock: &pauseAwareClock{}, delayLogs: loglimit.New(delayLogsPerSecond, 2),
		storeSlots: &prioritySemaphore{free: config.Concurrent}, moves: newMoves(), next: make(chan struct{}, 1),
		leavers: leavers{staying: map[moveKey]staying{}},
		active:  map[moveKey]struct{}{}, wanted: map[moveKey]struct{}{}, watched: map[pin.BootID]*watching{},
		known: map[pin.BootID]cluster.Node{}, tracked: map[pin.BootID]struct{}{},
	}
	if !config.NoRelief {
		f.relief = relief.New(relief.DefaultConfig())
	}
	return f
}

// The next reconciliation does the rest.
func (f *Failover) survive(what string, task func(), attributes ...any) bool {
	return f.config.Panics.Survives(f.log, what, task, attributes...)
}
