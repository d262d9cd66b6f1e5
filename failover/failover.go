// Package failover moves the rooms of a node that is gone, and no others. Each
// signaling node (edge) runs one Failover.
//
// It promises: a process that died on a reachable host is proven dead within milliseconds,
// by evidence that a drain, a proxy or a firewall cannot forge; a node that gossip takes for dead is
// believed dead only when it is silent here too, and until then nothing of it moves; every room for which this edge
// holds sockets is moved off a boot that died or left, once, and its clients are
// told, as long as the store answers at some time; the pins of rooms that no edge holds are removed by
// one elected edge; the survivors are not flooded; and
// a process that was declared dead and comes back is told which rooms it lost.
//
// It does not know where a room goes (the Rehomer decides), what telling a client
// means (Rooms does that), the store's keys, gossip's messages, or gRPC. DESIGN.md beside
// this file has the evidence, the states of a re-homing and what each crash leaves behind.
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
	// ReportDead says that a boot is proven dead; the event for it comes by Subscribe.
	ReportDead(id ring.NodeID, boot pin.BootID, why string)
	// ConfirmDead says so of a boot that is Doubted in the view. It does nothing when gossip has taken that back meanwhile.
	ConfirmDead(id ring.NodeID, boot pin.BootID, why string)
	// SetSilent says which boots are not heard here now, all of them at each call. They get no new rooms from this
	// edge while others take some.
	SetSilent(boots []pin.BootID)
}

// LocalRoom is a room for which this edge holds at least one client's socket.
type LocalRoom struct {
	Room   ring.RoomID
	Pin    pin.Pin       // under which this edge serves it now
	Peers  int           // sockets here; the larger room is moved first
	Expect headroom.Room // the whole room, as last known
}

// Rooms is the part of the edge that holds the clients' sockets. Its methods are called from
// many goroutines.
type Rooms interface {
	// PinnedTo lists the local rooms whose present pin names boot. It must be cheap: it
	// is asked every second about every boot that is known to be gone.
	PinnedTo(boot pin.BootID) []LocalRoom
	// Moved maps the room's local peers to the pin that stands now and tells their
	// clients to restart. It must ignore a pin that is not above the room's present one, for
	// it may be called twice, and a room that is not local any more.
	Moved(ctx context.Context, room ring.RoomID, to pin.Pin)
	// Stalled counts the local peers whose room is on boot and whose clients say that nothing arrives from
	// it; all counts every local peer there, and may be 0 where nobody says so. It is asked
	// twenty times a second about each live boot, so it must be cheap.
	Stalled(boot pin.BootID) (stalled, all int)
}

// Rehomer decides placements: *orchestrator.Orchestrator.
type Rehomer interface {
	// Rehome moves room off the dead pin from by compare-and-set and returns the pin that
	// stands afterwards, whoever wrote it.
	Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, expect headroom.Room) (pin.Pin, error)
}

// Pins is the store as the sweep reads it: *redisstore.Store.
type Pins interface {
	// AllPins visits every pin at least once; an error of visit ends it.
	AllPins(ctx context.Context, visit func(pin.Holding) error) error
	// Remove deletes p if it still stands and is not young, by compare-and-delete.
	Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error)
}

// Nodes calls SFU nodes: *control.Pool.
type Nodes interface {
	// Watch calls beat for each beat of the node at addr until something ends it.
	Watch(ctx context.Context, addr, edge string, beat func(control.Hello) error) error
	// HelloAt asks who lives at addr over a fresh connection. A refused one wraps control.ErrRefused.
	HelloAt(ctx context.Context, addr string) (control.Hello, error)
	// Outrank tells the node at addr that higher stands for room.
	Outrank(ctx context.Context, addr string, room ring.RoomID, higher pin.Pin) (held bool, err error)
	// Forget closes the pooled connection to addr.
	Forget(addr string)
}

// Config is what differs between edges and clusters.
type Config struct {
	// Self is this edge's stable name.
	Self ring.NodeID
	// Concurrent is how many rooms are moved in the store at once.
	Concurrent int
	// HandshakesPerSecond is how many clients all edges together send to one node per
	// second when rooms move, and Burst how many more at once.
	HandshakesPerSecond float64
	Burst               int
	// SilentAfter is how long a node may go without a beat before its stream is given up and it is suspected.
	SilentAfter time.Duration
	// AskAfter is how long a node may go without a beat before it is asked over a new connection. BelieveAfter
	// is how long it must have been silent, and AnswerWithin how long such a question must have had
	// no answer, before gossip is believed that the node is dead.
	AskAfter, BelieveAfter, AnswerWithin time.Duration
	// SweepEvery is the mean time between scans of all pins on the elected edge.
	SweepEvery time.Duration
}

// DefaultConfig is what the binary uses; Self is left to the caller.
func DefaultConfig() Config {
	return Config{
		// One round trip takes well under a millisecond, so 16 move some 10,000 rooms a second;
		// more would only queue up in the store's connections.
		Concurrent: 16,
		// Connecting a client (offer, ICE, DTLS, the first key frame) costs a node 2 to 4 ms of CPU.
		// 200 a second take 40 to 80 % of one core: on the two cores of a small machine the rooms
		// that are there already keep the other one. 50 at once are 100 to 200 ms
		// of one core, which the last of them waits.
		HandshakesPerSecond: 200,
		Burst:               50,
		// Nodes beat five times a second. A stream that is silent for so long may be broken without our
		// knowing. It raises suspicion only.
		SilentAfter: 2500 * time.Millisecond,
		// Three beats are missing, and the node is asked: that takes some 10 ms, and 100 on a busy machine. Gossip
		// speaks of a frozen node after 0.8 to 1.1 s. A second after the last beat five are missing and the
		// question has been out for 0.3 s: gossip is believed. So a frozen node is known after a second, and
		// any beat or answer in the meantime prevents it. With 0.8 s in place of the second it was 0.86 s.
		AskAfter: 600 * time.Millisecond, BelieveAfter: time.Second, AnswerWithin: 300 * time.Millisecond,
		// A scan of 100,000 pins is 200 steps of 0.1 ms of the server's time, and only catches what
		// the edges missed.
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
	check(c.Self != "", "the edge has no name")
	check(c.Concurrent > 0, "the number of rooms moved at once must be positive")
	check(c.HandshakesPerSecond > 0 && c.Burst > 0, "handshakes per second and their burst must be positive")
	check(c.AskAfter > 0 && c.BelieveAfter > 0 && c.AnswerWithin > 0, "the times of silence before a node is asked and gossip is believed must be positive")
	check(c.SilentAfter > 0 && c.SweepEvery > 0, "the times of silence and sweeping must be positive")
	return errors.Join(faults...)
}

// Failover is one edge's failover. Its methods may be called from any goroutine.
type Failover struct {
	config     Config
	membership Membership
	rooms      Rooms
	rehomer    Rehomer
	pins       Pins
	nodes      Nodes
	log        *slog.Logger

	askMedia func(ctx context.Context, addr string) Media // probeMedia, but in tests
	spread   func(time.Duration) time.Duration            // jitter, but in tests
	nap      func(context.Context, time.Duration) bool    // sleep, but in tests of an edge that is stopped
	clock    *awake

	complaints *rate.Limiter // bounds the log lines about attempts that failed

	gate  *gate
	pacer *pacer
	moves *moves

	mu       sync.Mutex // guards the fields below
	active   map[moveKey]struct{}
	wanted   map[moveKey]struct{}         // the rooms found at the last look, for those who retry
	watched  map[pin.BootID]*watching     // by live boot
	deaf     bool                         // none of several nodes was heard at the last look
	deaths   map[pin.BootID]chan struct{} // closed when a boot that rooms were sent to goes
	known    map[pin.BootID]cluster.Node  // SFU nodes seen live, until they are seen to be gone
	tracked  map[pin.BootID]struct{}      // returned boots that are being told
	evidence map[pin.BootID]string        // of the deaths proven here, for the log
	silent   []pin.BootID                 // as last told to the membership, sorted
	departed []departure                  // the last minute's, whose connections are still to be forgotten
}

// watching is the watch of one live boot.
type watching struct {
	node cluster.Node
	life *life
	end  func()
}

// New returns a Failover that does nothing before Run. The configuration must be
// valid (Config.Validate).
func New(config Config, membership Membership, rooms Rooms, rehomer Rehomer, pins Pins, nodes Nodes, log *slog.Logger) *Failover {
	return &Failover{
		config: config, membership: membership, rooms: rooms, rehomer: rehomer, pins: pins, nodes: nodes, log: log,
		askMedia: probeMedia, spread: jitter, nap: sleep, clock: &awake{}, complaints: rate.NewLimiter(complaintsPerSecond, 2),
		gate: newGate(config.Concurrent), pacer: newPacer(config.HandshakesPerSecond, config.Burst),
		moves:  newMoves(),
		active: map[moveKey]struct{}{}, wanted: map[moveKey]struct{}{}, watched: map[pin.BootID]*watching{},
		deaths: map[pin.BootID]chan struct{}{}, known: map[pin.BootID]cluster.Node{}, tracked: map[pin.BootID]struct{}{}, evidence: map[pin.BootID]string{},
	}
}
