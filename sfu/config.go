package sfu

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

// Config is for one media node.
type Config struct {
	// Node stays the same across restarts; Boot is this process's.
	Node ring.NodeID
	Boot pin.BootID

	// Control is where other media nodes reach this one, and Links returns a client of theirs. Without Links the node calls no other one.
	Control string
	Links   func(control string) (control.LinksClient, error)

	// MediaAddress is the UDP host:port of all media. Port 0 takes a free one: see Node.MediaAddress.
	MediaAddress string
	// MediaTCP is for clients whose UDP is blocked (RFC 6544): MediaTCPSame, MediaTCPOff, or a port.
	MediaTCP string
	// AdvertiseIPs replace the socket's addresses behind a one-to-one NAT or on all interfaces.
	AdvertiseIPs []string
	Loopback     bool

	// EgressBatch sends bursts by sendmmsg and UDP_SEGMENT (Linux only).
	EgressBatch bool

	// The ceilings bound the node's egress: new rooms are refused above them.
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64

	// Grace is how long empty rooms and absent peers stay.
	Grace time.Duration
	// DrainTimeout is for drains without a deadline.
	DrainTimeout time.Duration

	Limits Limits

	// Panics counts panics, also those of the control server, which must share it. Without one the node has its own.
	Panics *panics.Guard

	// Events is told of rooms that open and close here; nil: nobody.
	Events *events.Recorder

	// Neighbours has other media nodes stand by for the connections, and this node for theirs; nil: nobody does.
	Neighbours Neighbours

	// Metrics counts what happens seldom; nil: nothing is counted.
	Metrics *metrics.Media

	// Candidates returns the media nodes that could carry some of a room's people, in the order in which they are asked. nil: there are none,
	// and rooms stay on this node.
	Candidates func(ring.RoomID) []spread.Candidate
}

// MostPeersPerRoom bounds Limits.PeersPerRoom.
const MostPeersPerRoom = 5000

// Limits bound a node, a room and a peer.
type Limits struct {
	Rooms        int
	PeersPerRoom int
	// ListedPerRoom is how many people a roster has before those who only watch are counted instead.
	ListedPerRoom int
	// One offer may have so many slots and bytes.
	SlotsPerPeer int
	SDPBytes     int
}

func offerLimits(l Limits) offer.Limits {
	return offer.Limits{SlotsPerPeer: l.SlotsPerPeer, SDPBytes: l.SDPBytes}
}

// DefaultConfig lacks Node and Boot.
func DefaultConfig() Config {
	return Config{
		// On a server an address must be named.
		MediaAddress: "127.0.0.1:0",
		MediaTCP:     MediaTCPSame,
		EgressBatch:  true,
		// 1 Gbit/s, less a fifth for retransmissions and growing rooms.
		CeilingBitsPerSecond: 800_000_000,
		// A small shared machine can send so many.
		CeilingPacketsPerSecond: 100_000,
		Grace:                   30 * time.Second,
		// Kubernetes kills a process 30 s after it asked it to end. 10 s of them are left to move the last rooms by restarts.
		DrainTimeout: 20 * time.Second,
		Limits: Limits{
			Rooms:        5000,
			PeersPerRoom: 1000,
			// A roster of 1,000 is a message of 126 KB for each newcomer, and costs a second of CPU for each change in a room of 5,000.
			ListedPerRoom: 1000,
			// 49 pictures fit a page of 7 by 7, and 15 slots are left for sound.
			SlotsPerPeer: 64,
			// A client's socket takes messages of at most 256 KiB.
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
	if err := checkMediaTCP(c.MediaTCP); err != nil {
		faults = append(faults, err)
	}
	for _, ip := range c.AdvertiseIPs {
		_, err := netip.ParseAddr(ip)
		fault(err != nil, "advertised address %q is not an IP address", ip)
	}
	fault(c.CeilingBitsPerSecond == 0, "ceiling of bits per second is 0")
	fault(c.CeilingPacketsPerSecond == 0, "ceiling of packets per second is 0")
	fault(c.Grace <= 0, "grace is %v, want a positive duration", c.Grace)
	fault(c.DrainTimeout <= 0, "drain timeout is %v, want a positive duration", c.DrainTimeout)
	for name, limit := range map[string]int{
		"rooms": c.Limits.Rooms, "peers per room": c.Limits.PeersPerRoom, "listed people per room": c.Limits.ListedPerRoom, "slots per peer": c.Limits.SlotsPerPeer, "SDP bytes": c.Limits.SDPBytes,
	} {
		fault(limit <= 0, "limit of %s is %d, want a positive number", name, limit)
	}
	fault(c.Limits.PeersPerRoom > MostPeersPerRoom, "--room-people %d: give 1 to %d", c.Limits.PeersPerRoom, MostPeersPerRoom)
	return errors.Join(faults...)
}
