package sfu

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/data"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/share"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// socketBuffer holds half a second of 64 Mbit/s. The kernel may give less.
const socketBuffer = 4 << 20

// Node is one media node. It is safe for concurrent use.
type Node struct {
	cfg    Config
	owner  Owner
	log    *slog.Logger
	socket *egress.Conn
	panics *panics.Guard
	// rosters write to the store who is in the rooms.
	rosters *roster.Writer

	transport *transport.Transport
	// trunks are the connections to other media nodes.
	trunks *cascade.Trunks
	// join makes what carries the media of a link to another media node; constant.
	join func(context.Context, cascade.Peer, cascade.LinkConfig) (linkMedia, error)
	// starting hands Run the rooms to serve; stopped is closed when Run ends.
	starting chan *room
	stopped  chan struct{}
	// drainNews holds one signal at most.
	drainNews chan struct{}
	// watchers counts the Watch streams of signaling nodes.
	watchers atomic.Int32
	// closers are the connections that are being closed.
	closers sync.WaitGroup
	// answering admits one offer per core.
	answering chan struct{}

	// mu guards the fields below.
	mu    sync.Mutex
	rooms map[ring.RoomID]*room
	// branches are the rooms of other owners that have people here.
	branches map[ring.RoomID]*room
	// serving has also the rooms that were handed over and still send.
	serving map[*room]struct{}
	// drain is nil while the node does not drain.
	drain     *draining
	stones    *tombstones
	reportSeq uint64
	measured  headroom.Egress
	socketed  meter
	// limitedSince is when pictures began to be held back, zero if none are.
	limitedSince time.Time
	// limitedFor sums up the former times, and retired the counts of rooms that have ended.
	limitedFor time.Duration
	retired    forward.Stats

	// Only Run's goroutine uses sharing.
	sharing sharing

	reachable reachable

	standby *standbys

	tally connection.Tally
	// messages counts those of data channels.
	messages data.Tally
}

// New binds the media sockets and starts nothing.
func New(cfg Config, owner Owner, log *slog.Logger) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure SFU: %w", err)
	}
	media, err := listen(cfg, log)
	if err != nil {
		return nil, err
	}
	log = log.With("node", string(cfg.Node))
	guard := cmp.Or(cfg.Panics, panics.New())
	n := &Node{
		cfg: cfg, owner: owner, log: log, socket: media, panics: guard, transport: transport.New(media, guard, log),
		drainNews: make(chan struct{}, 1), serving: map[*room]struct{}{}, starting: make(chan *room), stopped: make(chan struct{}), answering: make(chan struct{}, runtime.GOMAXPROCS(0)),
		rooms: map[ring.RoomID]*room{}, branches: map[ring.RoomID]*room{}, stones: newTombstones(), rosters: roster.NewWriter(guard, log),
	}
	n.trunks = cascade.NewTrunks(cascade.TrunksConfig{
		Self: cascade.Peer{Node: cfg.Node, Boot: cfg.Boot, Control: cfg.Control}, Media: n.transport, Links: cfg.Links, Panics: guard, Log: log,
		Addresses: func() []netip.AddrPort {
			// Run has checked that there are some.
			told, _ := n.candidates()
			return told
		},
	})
	n.join = n.joinTrunk
	n.standby = newStandbys(n)
	return n, nil
}

// Panics counts caught panics. The control server must share it.
func (n *Node) Panics() *panics.Guard { return n.panics }

// Rosters writes to the store who is in the rooms. The caller gives it the store and runs it.
func (n *Node) Rosters() *roster.Writer { return n.rosters }

// MediaAddress is the address to which the media socket is bound.
func (n *Node) MediaAddress() net.Addr { return n.socket.LocalAddr() }

// Run serves until ctx ends. It closes the media socket first, silently, because clients are about to move.
func (n *Node) Run(ctx context.Context) error {
	defer close(n.stopped)
	if _, err := n.candidates(); err != nil {
		// The error of the configuration says more than one of the closing.
		_ = n.socket.Close()
		return err
	}
	var media, rooms sync.WaitGroup
	mediaCtx, endMedia := context.WithCancel(context.WithoutCancel(ctx))
	defer endMedia()
	broken := make(chan error, 1)
	media.Go(func() { broken <- n.transport.Run(mediaCtx) })
	media.Go(func() { n.trunks.Run(mediaCtx) })
	media.Go(func() { n.standby.run(mediaCtx) })
	roomsCtx, endRooms := context.WithCancel(context.WithoutCancel(ctx))
	defer endRooms()
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	divide := time.NewTicker(share.Every)
	defer divide.Stop()
	var err error
	for running := true; running; {
		select {
		case r := <-n.starting:
			rooms.Go(func() { n.serve(roomsCtx, r) })
		// However old the tick is, the counters are read now.
		case <-tick.C:
			n.panics.Catch(n.log, "measuring the load broke", func() { n.measure(time.Now()) })
		case <-divide.C:
			n.panics.Catch(n.log, "sharing the egress broke", func() { n.share(time.Now()) })
		case err = <-broken:
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	if closing := n.socket.Close(); closing != nil {
		n.log.Warn("close media socket", "error", closing)
	}
	endRooms()
	rooms.Wait()
	n.closers.Wait()
	endMedia()
	media.Wait()
	return err
}

// MediaTCP is the port of media over TCP, 0 for none.
func (n *Node) MediaTCP() uint16 { return n.socket.StreamAddr().Port() }

// MediaIPs are the addresses in answers to clients.
func (n *Node) MediaIPs() []string {
	// Run has checked that there are some.
	told, _ := n.candidates()
	var ips []string
	for _, candidate := range told[:min(len(told), 4)] {
		ips = append(ips, candidate.Addr().WithZone("").String())
	}
	return ips
}

func (n *Node) candidates() ([]netip.AddrPort, error) {
	bound, ok := n.socket.LocalAddr().(*net.UDPAddr)
	if !ok {
		return nil, fmt.Errorf("media socket has the address %v, want UDP", n.socket.LocalAddr())
	}
	told, err := candidates(bound, n.cfg)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	if len(told) == 0 {
		return nil, fmt.Errorf("media socket %s has no address that a client may be told (loopback: %v, advertised: %v)",
			bound, n.cfg.Loopback, n.cfg.AdvertiseIPs)
	}
	return told, nil
}

// Held lists the open rooms.
func (n *Node) Held() []pin.Holding {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := make([]pin.Holding, 0, len(n.rooms))
	for id, r := range n.rooms {
		held = append(held, pin.Holding{Room: id, Pin: r.pin()})
	}
	return held
}

// Fence tells of a higher pin, without waiting. If that names another boot, the room is handed over, and never served
// at or below its fence.
func (n *Node) Fence(room ring.RoomID, higher pin.Pin) { n.fence(room, higher, false) }

// fence reports whether the room was held under a lower fence. live: both nodes are well, and media flows until
// everybody has left.
func (n *Node) fence(room ring.RoomID, higher pin.Pin, live bool) bool {
	n.mu.Lock()
	r, held := n.rooms[room]
	ours := higher.Node == n.cfg.Node && higher.Boot == n.cfg.Boot
	if held && !r.pin().Fence.Less(higher.Fence) {
		n.mu.Unlock()
		return false
	}
	if ours {
		n.mu.Unlock()
		if held {
			r.post(func() { r.adopt(higher) })
		}
		return false
	}
	n.stones.lay(room, higher.Fence, control.Refusal_REFUSAL_FENCED, time.Now())
	if held {
		delete(n.rooms, room)
	}
	n.mu.Unlock()
	if held {
		n.log.Info("room outranked", "room", string(room), "fence", r.pin().Fence.String(), "current", higher.Fence.String(), "owner", string(higher.Node))
		r.handOver(higher, live)
		failpoint.Hit("move.fenced")
	}
	return held
}

func (n *Node) advertised() string {
	address := n.socket.LocalAddr().String()
	if len(n.cfg.AdvertiseIPs) == 0 {
		return address
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(n.cfg.AdvertiseIPs[0], port)
}

// closeSoon closes a connection in a goroutine of its own, because that may wait and a room's loop must not.
func (n *Node) closeSoon(closing func()) {
	n.closers.Go(func() { n.panics.Catch(n.log, "a connection broke its closing", closing) })
}

// openRooms are the rooms that send: those that this node owns, and the branches of others.
func (n *Node) openRooms() []*room {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(n.sending())
}

// sending needs mu.
func (n *Node) sending() iter.Seq[*room] {
	return func(yield func(*room) bool) {
		for _, rooms := range []map[ring.RoomID]*room{n.rooms, n.branches} {
			for _, r := range rooms {
				if !yield(r) {
					return
				}
			}
		}
	}
}
