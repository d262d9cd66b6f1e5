// Package failover moves the rooms of a node that is gone, and no others. Each signaling node
// runs one Failover.
//
// It promises:
//   - A process that died on a reachable host is proven dead within milliseconds, by evidence that
//     a drain or a proxy cannot forge, nor a firewall unless it rejects all of the node's ports.
//   - A node that gossip reports dead is believed dead only when it is silent here, too.
//   - Every room with sockets here is moved off a boot that died or left, once, and its clients
//     are told, as soon as the store answers.
//   - Rooms whose people notice nothing of a move leave a node that is silent for a moment; few, and rarely.
//   - One elected signaling node removes the pins of rooms without sockets.
//   - The survivors are not flooded.
//   - A process that was declared dead and comes back is told which rooms it lost.
//
// It does not know where a room goes (Rehomer decides), how clients are told (Rooms does it), the
// store's keys, gossip's messages, or gRPC. DESIGN.md has the evidence, the states of a re-homing,
// and what each crash leaves behind.
//
// Failover's methods stand in one file for each thing that it does: run.go reconciles, watch.go and detector.go find deaths, rehome.go, suspect.go,
// drain.go and relieve.go move rooms, sweep.go and returned.go clean up. Each file can be read alone after run.go, with which a reader begins.
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
	"github.com/holdfast-rtc/holdfast/failover/suspicion"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Membership is what failover needs of *cluster.Cluster.
type Membership interface {
	Subscribe() (events <-chan cluster.Event, cancel func())
	View() *cluster.View
	// ReportDead declares a boot dead by proof. The event of the death follows on Subscribe's channel.
	ReportDead(id ring.NodeID, boot pin.BootID, why string)
	// ConfirmDead declares a boot dead that gossip suspects and that is silent here, too.
	ConfirmDead(id ring.NodeID, boot pin.BootID, why string)
	// SetUnreachable names the boots that this process does not hear. They leave the ring and keep their rooms.
	SetUnreachable(boots []pin.BootID)
}

// LocalRoom is a room that has clients on this signaling node.
type LocalRoom struct {
	Room ring.RoomID
	Pin  pin.Pin
	// Peers counts the room's peers whose sockets are on this node.
	Peers int
	// Expect is the size of the whole room, on all signaling nodes.
	Expect headroom.Room
	// Spread says that some of the room's people here are at a branch, not at the node of its pin.
	Spread bool
	// WholeAt is the boot that can go on with all of the room's connections, without a word to its clients, or nothing.
	WholeAt pin.BootID
}

// Rooms is what failover needs of the hub, which has the clients' sockets. It must be safe for concurrent use.
type Rooms interface {
	LeavingRooms
	// PinnedTo lists the local rooms whose pin names the boot. It is called each second for each lost boot.
	PinnedTo(boot pin.BootID) []LocalRoom
	// Moved tells the room's clients to restart on another node. It ignores rooms that are not here and pins that are
	// not higher.
	Moved(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Delayed tells the room's clients why their room has not moved yet. It is called once for each move.
	Delayed(room ring.RoomID, why error)
	// Stalled counts the peers of the boot's rooms that receive nothing, and all of its peers. It is called 20 times
	// a second. If stalled is 0, all may be 0, too.
	Stalled(boot pin.BootID) (stalled, all int)
}

// LeavingRooms is what planned moves off a live node need of the hub.
type LeavingRooms interface {
	// MovedLive tells the room's clients to connect to the new node before they leave the old one, which goes on
	// sending.
	MovedLive(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Settled reports whether no client needs the old node any more, after a room moved live under that fence. It is
	// true for a room that is not here under that fence.
	Settled(room ring.RoomID, fence pin.Fence) bool
	// Stays tells the room's clients why their room cannot leave a draining node. An empty reason withdraws that.
	Stays(room ring.RoomID, why string)
}

// Rehomer chooses where rooms go and writes their pins. It is *orchestrator.Orchestrator.
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

// Pins is what the sweep needs of *redisstore.Store.
type Pins interface {
	// AllPins visits every pin at least once, some of them twice.
	AllPins(ctx context.Context, visit func(pin.Holding) error) error
	// Remove deletes the pin p if it is still the current one and older than 10 s.
	Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error)
}

// Nodes asks and tells the media nodes. It is *control.Pool.
type Nodes interface {
	// Watch calls heartbeat for each message of the stream. It returns the error that ended the stream, or
	// heartbeat's error.
	Watch(ctx context.Context, addr, watcher string, heartbeat func(control.Hello) error) error
	// HelloAt asks a node who it is, over a new connection. The error of a refused dial wraps control.ErrRefused.
	HelloAt(ctx context.Context, addr string) (control.Hello, error)
	// Outrank tells a media node of a higher pin of a room, and returns whether the node held the room. With live,
	// the node goes on sending while the clients move.
	Outrank(ctx context.Context, addr string, room ring.RoomID, higher pin.Pin, live bool) (held bool, err error)
	// Forget closes the pooled connection to the address.
	Forget(addr string)
}

// Config is what a Failover is told by its process. DefaultConfig states the reasons.
type Config struct {
	// Self is the identity of this signaling node.
	Self ring.NodeID
	// Concurrent bounds the re-homings that use the store at one time.
	Concurrent int
	// A node is asked a question after it was silent for AskAfter. A death that gossip reports is confirmed when the
	// node has been silent for BelieveAfter and a question has been unanswered for AnswerWithin.
	AskAfter, BelieveAfter, AnswerWithin time.Duration
	// NoRelief leaves the rooms on hot nodes.
	NoRelief bool
	// Standby returns the node at which the clients of a room on the node owner notice nothing of a move, or nothing. It may be nil.
	Standby func(room ring.RoomID, owner ring.NodeID, need headroom.Egress) ring.NodeID
	// Panics counts the caught panics. If it is nil, New makes a guard of its own.
	Panics *panics.Guard
	// Events is told of nodes that come and go. It may be nil.
	Events *events.Recorder
	// Metrics counts deaths and re-homings. It may be nil.
	Metrics *metrics.Failover
	// Traces is told of deaths and of the rooms that they move. It may be nil.
	Traces *traces.Tracer
}

// DefaultConfig has the values of the binary. Self and Panics are left to the caller.
func DefaultConfig() Config {
	return Config{
		// With 16 calls to the store at one time, some 10,000 rooms a second get a new pin.
		Concurrent: 16,
		// AskAfter is three missing heartbeats. Gossip needs about a second to suspect a node, so BelieveAfter costs
		// no time.
		AskAfter: 600 * time.Millisecond, BelieveAfter: time.Second, AnswerWithin: 300 * time.Millisecond,
	}
}

// Failover is one signaling node's part of failover. Run may be called once. The fields below mu are guarded by mu.
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
	// relief is nil if Config.NoRelief is set.
	relief *relief.Relief
	// suspicion is the detector's.
	suspicion *suspicion.Suspicion
	moves     *moves
	next      chan struct{}

	mu     sync.Mutex
	active map[moveKey]struct{}
	// wanted has the lost rooms of the last reconciliation. A re-homing whose room is no longer in it gives up.
	wanted   map[moveKey]struct{}
	watched  map[pin.BootID]*watching
	isolated bool
	known    map[pin.BootID]cluster.Node
	tracked  map[pin.BootID]struct{}
	// unreachable is sorted.
	unreachable []pin.BootID
	departed    []departure
	leavers     leavers
}

type watching struct {
	node   cluster.Node
	health *peerHealth
	end    func()
}

// New starts nothing. It needs a valid config.
func New(config Config, membership Membership, rooms Rooms, rehomer Rehomer, pins Pins, nodes Nodes, log *slog.Logger) *Failover {
	config.Panics = cmp.Or(config.Panics, panics.New())
	f := &Failover{
		config: config, membership: membership, rooms: rooms, rehomer: rehomer, pins: pins, nodes: nodes, log: log,
		askMedia: probeMedia, spread: backoff.Jitter, nap: backoff.Sleep, clock: &pauseAwareClock{}, delayLogs: loglimit.New(delayLogsPerSecond, 2),
		storeSlots: &prioritySemaphore{free: config.Concurrent}, suspicion: suspicion.New(suspicion.DefaultConfig()), moves: newMoves(), next: make(chan struct{}, 1),
		leavers: leavers{staying: map[moveKey]staying{}},
		active:  map[moveKey]struct{}{}, wanted: map[moveKey]struct{}{}, watched: map[pin.BootID]*watching{},
		known: map[pin.BootID]cluster.Node{}, tracked: map[pin.BootID]struct{}{},
	}
	if !config.NoRelief {
		f.relief = relief.New(relief.DefaultConfig())
	}
	return f
}

// Active counts the rooms that are re-homed or moved now.
func (f *Failover) Active() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.active)
}

// catch runs task and logs a panic of it. A task that failed this way is begun again by the next reconciliation.
func (f *Failover) catch(what string, task func(), attributes ...any) {
	f.config.Panics.Catch(f.log, what, task, attributes...)
}
