// Package failover moves the rooms of a node that is gone, and no others. Each signaling node
// runs one Failover.
//
// It promises:
//   - A process that died on a reachable host is proven dead within milliseconds, by evidence that
//     a drain, a proxy or a firewall cannot forge.
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
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Membership is gossip: *cluster.Cluster.
type Membership interface {
	Subscribe() (events <-chan cluster.Event, cancel func())
	View() *cluster.View
	// ReportDead declares a boot dead by proof. The event follows by Subscribe.
	ReportDead(id ring.NodeID, boot pin.BootID, why string)
	// ConfirmDead declares a boot dead if it is Suspect in the view.
	ConfirmDead(id ring.NodeID, boot pin.BootID, why string)
	// SetUnreachable replaces the set of boots that are not heard here. They get no new rooms from here
	// while others can take them.
	SetUnreachable(boots []pin.BootID)
}

// LocalRoom is a room with at least one client's socket here.
type LocalRoom struct {
	Room   ring.RoomID
	Pin    pin.Pin       // under which it is served here now
	Peers  int           // sockets here; the largest room is moved first
	Expect headroom.Room // of the whole room, as last known
}

// Rooms holds the clients' sockets. Its methods must be safe for concurrent use.
type Rooms interface {
	// PinnedTo lists the local rooms whose current pin names boot. It must be cheap: it is called
	// every second for each boot that is gone.
	PinnedTo(boot pin.BootID) []LocalRoom
	// Moved maps the room's local peers to a new pin and tells their clients to restart. It must
	// ignore a room that is not local, and a pin that is not above the current one.
	Moved(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Stalled counts the local peers in rooms of boot that receive nothing from it; all counts every
	// local peer there, and may be 0 if stalled is. It must be cheap: it is called twenty times a
	// second for each live boot.
	Stalled(boot pin.BootID) (stalled, all int)
}

// Rehomer decides placements: *orchestrator.Orchestrator.
type Rehomer interface {
	// Rehome replaces the dead pin from by compare-and-set and returns the pin that is now stored,
	// whoever wrote it.
	Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error)
}

// Pins is the store of the sweep: *redisstore.Store.
type Pins interface {
	// AllPins visits every pin at least once, until visit returns an error.
	AllPins(ctx context.Context, visit func(pin.Holding) error) error
	// Remove deletes p by compare-and-delete, unless it is young.
	Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error)
}

// Nodes calls SFU nodes: *control.Pool.
type Nodes interface {
	// Watch calls heartbeat for each one of the node at addr, until the stream ends or heartbeat
	// returns an error.
	Watch(ctx context.Context, addr, watcher string, heartheartbeat func(control.Hello) error) error
	// HelloAt asks over a new connection who is at addr. A refusal wraps control.ErrRefused.
	HelloAt(ctx context.Context, addr string) (control.Hello, error)
	// Outrank tells the node at addr that the store has a higher pin for room.
	Outrank(ctx context.Context, addr string, room ring.RoomID, higher pin.Pin) (held bool, err error)
	// Forget closes the pooled connection to addr.
	Forget(addr string)
}

// Config has its reasons in DefaultConfig.
type Config struct {
	// Self is the name of this signaling node.
	Self ring.NodeID
	// Concurrent is how many rooms are moved in the store at once.
	Concurrent int
	// HandshakesPerSecond is how many clients all signaling nodes together send to one node when
	// rooms move, and Burst how many more at once.
	HandshakesPerSecond float64
	Burst               int
	// SuspectAfter is the silence after which a Watch stream is closed and its node suspected.
	SuspectAfter time.Duration
	// AskAfter is the silence after which a node is asked over a new connection. Gossip's word that
	// it is dead counts after BelieveAfter, if a question is unanswered for AnswerWithin.
	AskAfter, BelieveAfter, AnswerWithin time.Duration
	// SweepEvery is the mean time between scans of all pins.
	SweepEvery time.Duration
}

// DefaultConfig returns the defaults; the caller sets Self.
func DefaultConfig() Config {
	return Config{
		// A round trip takes well under a millisecond, so 16 move some 10,000 rooms a second.
		Concurrent: 16,
		// Connecting a client (offer, ICE, DTLS, the first key frame) costs a node 2 to 4 ms of CPU:
		// 200 a second take at most 80 % of one core, and 50 at once take 0.2 s.
		HandshakesPerSecond: 200,
		Burst:               50,
		// Twelve heartbeats are missing: the stream may be broken unnoticed.
		SuspectAfter: 2500 * time.Millisecond,
		// Three heartbeats are missing, and an answer takes 10 to 100 ms. Gossip reports a frozen node
		// after 0.8 to 1.1 s. So it is known after a second, unless a heartbeat or answer comes.
		AskAfter: 600 * time.Millisecond, BelieveAfter: time.Second, AnswerWithin: 300 * time.Millisecond,
		// A scan of 100,000 pins takes 200 steps of 0.1 ms, and finds only what was missed.
		SweepEvery: 30 * time.Second,
	}
}

// Validate lists every fault at once.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New(text))
		}
	}
	check(c.Self != "", "the signaling node has no name")
	check(c.Concurrent > 0, "the number of rooms moved at once must be positive")
	check(c.HandshakesPerSecond > 0 && c.Burst > 0, "handshakes per second and their burst must be positive")
	check(c.AskAfter > 0 && c.BelieveAfter > 0 && c.AnswerWithin > 0, "the times of silence before a node is asked and gossip is believed must be positive")
	check(c.SuspectAfter > 0 && c.SweepEvery > 0, "the times of silence and sweeping must be positive")
	return errors.Join(faults...)
}

// Failover is the failover of one signaling node. Run is called once.
type Failover struct {
	config     Config
	membership Membership
	rooms      Rooms
	rehomer    Rehomer
	pins       Pins
	nodes      Nodes
	log        *slog.Logger

	askMedia func(ctx context.Context, addr string) Media // probeMedia; tests replace it
	spread   func(time.Duration) time.Duration            // jitter; tests replace it
	nap      func(context.Context, time.Duration) bool    // sleep of the detector loop; tests replace it
	clock    *pauseAwareClock

	delayLogs  *rate.Limiter // of logDelay
	storeSlots *prioritySemaphore
	pacer      *pacer
	moves      *moves

	mu          sync.Mutex                   // guards the fields below
	active      map[moveKey]struct{}         // the moves under way
	wanted      map[moveKey]struct{}         // the lost rooms of the last reconciliation
	watched     map[pin.BootID]*watching     // by live boot
	isolated    bool                         // no node was heard lately
	deaths      map[pin.BootID]chan struct{} // by boot that rooms were sent to; closed when it is gone
	known       map[pin.BootID]cluster.Node  // SFU nodes seen live and not yet seen gone
	tracked     map[pin.BootID]struct{}      // returned boots that are being told
	unreachable []pin.BootID                 // the last SetUnreachable, sorted
	departed    []departure                  // of the last forgetAfter
}

// watching is the watch of one live boot.
type watching struct {
	node   cluster.Node
	health *peerHealth
	end    func()
}

// New returns a Failover that does nothing before Run. config must be valid.
func New(config Config, membership Membership, rooms Rooms, rehomer Rehomer, pins Pins, nodes Nodes, log *slog.Logger) *Failover {
	return &Failover{
		config: config, membership: membership, rooms: rooms, rehomer: rehomer, pins: pins, nodes: nodes, log: log,
		askMedia: probeMedia, spread: jitter, nap: sleep, clock: &pauseAwareClock{}, delayLogs: rate.NewLimiter(delayLogsPerSecond, 2),
		storeSlots: &prioritySemaphore{free: config.Concurrent}, pacer: newPacer(config.HandshakesPerSecond, config.Burst), moves: newMoves(),
		active: map[moveKey]struct{}{}, wanted: map[moveKey]struct{}{}, watched: map[pin.BootID]*watching{},
		deaths: map[pin.BootID]chan struct{}{}, known: map[pin.BootID]cluster.Node{}, tracked: map[pin.BootID]struct{}{},
	}
}
