package sfu

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// Config is one SFU node.
type Config struct {
	Node ring.NodeID // stable name, the same across restarts
	Boot pin.BootID  // this run of the process

	// MediaAddress is the host:port of the one UDP socket of all media. Port 0
	// takes a free one; Node.MediaAddress says which.
	MediaAddress string
	// AdvertiseIPs replace the socket's own address in the candidates, for
	// a node behind a one-to-one NAT or bound to all interfaces.
	AdvertiseIPs []string
	// Loopback allows candidates on loopback addresses: one machine, tests, dev.
	Loopback bool

	// EgressBatch sends the packets of one burst with one system call, and lets the
	// kernel cut what goes to one client (sendmmsg and UDP_SEGMENT; on Linux only). Packets of one frame then leave back to back.
	EgressBatch bool

	CeilingBitsPerSecond    uint64 // of egress; no new room is opened past it
	CeilingPacketsPerSecond uint64

	// Grace is how long a peer without a signaling node stays, how long an expected peer
	// is kept in the roster, and how long an empty room stays open.
	Grace time.Duration

	Limits Limits
}

// Limits bound what one node, one room and one peer can take.
type Limits struct {
	Rooms        int // on the node; past it a room is not opened (no headroom)
	PeersPerRoom int // past it: room full
	SlotsPerPeer int // receive m-lines of one offer; past it the offer is rejected
	SDPBytes     int // of one offer; past it the offer is rejected
}

// offerLimits are those of one offer.
func offerLimits(l Limits) offer.Limits {
	return offer.Limits{SlotsPerPeer: l.SlotsPerPeer, SDPBytes: l.SDPBytes}
}

// DefaultConfig is a node with nothing named: Node and Boot must still be given.
func DefaultConfig() Config {
	return Config{
		// A server names its address: of several networks clients are told of one.
		MediaAddress: "127.0.0.1:0",
		// It saves a fifth of the CPU at 50 viewers and more (forward/DESIGN.md).
		EgressBatch: true,
		// 1 Gbit/s with a fifth left for retransmissions and for the rooms that are
		// open to grow.
		CeilingBitsPerSecond: 800_000_000,
		// DESIGN.md measured 490,000 packets/s and core at best and 170,000 with one
		// system call a packet; 100,000 is safe on a small shared machine.
		CeilingPacketsPerSecond: 100_000,
		// Long enough for a browser to find another signaling node through a balancer's
		// health check interval, short enough that a ghost is not a nuisance.
		Grace: 30 * time.Second,
		Limits: Limits{
			// A room costs a few goroutines and its peers; this bounds what a signaling node
			// gone wild can open.
			Rooms: 5000,
			// The roster is sent whole: 300 entries are about 60 KiB. More people
			// than that belong in another kind of room (one that fans out in tiers).
			PeersPerRoom: 300,
			// A 7 x 7 grid of video and a few audio slots.
			SlotsPerPeer: 64,
			// The client's socket takes messages of 256 KiB at most.
			SDPBytes: 256 << 10,
		},
	}
}

// Validate lists every fault.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	identity := pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: c.Node, Boot: c.Boot, Control: "-"}
	if err := identity.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("node %q, boot %q: %w", c.Node, c.Boot, err))
	}
	if _, err := net.ResolveUDPAddr("udp", c.MediaAddress); err != nil {
		faults = append(faults, fmt.Errorf("media address %q: %w", c.MediaAddress, err))
	}
	for _, ip := range c.AdvertiseIPs {
		_, err := netip.ParseAddr(ip)
		fault(err != nil, "advertised address %q is not an IP address", ip)
	}
	fault(c.CeilingBitsPerSecond == 0, "ceiling of bits per second is 0")
	fault(c.CeilingPacketsPerSecond == 0, "ceiling of packets per second is 0")
	fault(c.Grace <= 0, "grace is %v, want a positive duration", c.Grace)
	for name, limit := range map[string]int{
		"rooms": c.Limits.Rooms, "peers per room": c.Limits.PeersPerRoom, "slots per peer": c.Limits.SlotsPerPeer, "SDP bytes": c.Limits.SDPBytes,
	} {
		fault(limit <= 0, "limit of %s is %d, want a positive number", name, limit)
	}
	return errors.Join(faults...)
}
