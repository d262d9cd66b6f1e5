package cluster

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Role is what a process does.
type Role string

// The roles.
const (
	RoleSFU       Role = "sfu"
	RoleSignaling Role = "signaling"
)

func (r Role) known() bool { return r == RoleSFU || r == RoleSignaling }

// Node is a live member.
type Node struct {
	ID      ring.NodeID
	Boot    pin.BootID
	Role    Role
	Control string
	Media   string
	// HTTP is that of a signaling node.
	HTTP string
	// Draining takes the node off the ring.
	Draining bool
	// Overdue says that the drain is past its deadline: rooms move by restarts.
	Overdue bool
	// Suspect says that gossip reports the node dead, and nobody has confirmed it. It is off the ring.
	Suspect bool
	// Unreachable says that this process does not hear the node. It is off the ring if others are left.
	Unreachable bool
	// Later says that the metadata are of a later version, and were read in part.
	Later bool
	Load  Load

	// Protocol is that of the control port; 0 if the node is too old to say.
	Protocol uint32
	// Capabilities are those of package control, separated by commas.
	Capabilities string
	// MediaIPs are the addresses that clients use, separated by commas. Empty stands for that of Media.
	MediaIPs string
	// Version is that of the node's build; empty if it is too old to say.
	Version string
}

// MediaSockets are the addresses to which clients send media.
func (n Node) MediaSockets() []netip.AddrPort {
	media, err := netip.ParseAddrPort(n.Media)
	if n.MediaIPs == "" && err == nil {
		return []netip.AddrPort{media}
	}
	_, portText, _ := net.SplitHostPort(n.Media)
	port, err := strconv.ParseUint(portText, 10, 16)
	var sockets []netip.AddrPort
	for text := range strings.SplitSeq(n.MediaIPs, ",") {
		if ip, bad := netip.ParseAddr(text); bad == nil && err == nil {
			sockets = append(sockets, netip.AddrPortFrom(ip, uint16(port)))
		}
	}
	return sockets
}

// Can reports whether the node has a capability.
func (n Node) Can(capability string) bool {
	return slices.Contains(strings.Split(n.Capabilities, ","), capability)
}

// Load is a node's report of itself. A signaling node's report has only Seq, Sockets and Waiting.
type Load struct {
	// Seq grows with each report of a boot.
	Seq uint64
	// For each room the larger of what it sends and what is reserved for it.
	EgressBitsPerSecond     uint64
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	// Synced are the store incarnations in which all pins of the node are confirmed.
	Synced   pin.Incarnations
	Watchers uint32
	Sockets  uint32
	// Waiting is how many of a signaling node's people stand in a line before a room.
	Waiting uint32
	// The egress if every room were at its lowest layers.
	FloorBitsPerSecond    uint64
	FloorPacketsPerSecond uint64
	// Limited is for how many seconds pictures have been held back; 0 if they are not.
	Limited uint32
}

// Name is what a node keeps across restarts.
type Name struct {
	Role Role
	ID   ring.NodeID
}

// Name returns the node's name.
func (n Node) Name() Name { return Name{n.Role, n.ID} }

// View is the cluster at one moment. It is immutable.
type View struct {
	Version uint64
	// Nodes are the media nodes.
	Nodes     map[ring.NodeID]Node
	Signaling map[ring.NodeID]Node
	// Ring has the media nodes that are not Draining, Suspect or Unreachable.
	Ring    *ring.Ring
	Gone    map[pin.BootID]Departure
	Settled bool
	// SettledAt is zero before the view has settled.
	SettledAt time.Time

	// departed is what Gone was made of.
	departed []departure
}

// absentFor is at least rejoinEvery, so that a healed partition has shown every node.
const absentFor = 30 * time.Second

// Absent reports whether the boot is neither live nor gone in a view that has been settled for absentFor.
func (v *View) Absent(id ring.NodeID, boot pin.BootID) bool {
	return !v.SettledAt.IsZero() && time.Since(v.SettledAt) >= absentFor && v.Nodes[id].Boot != boot && v.Gone[boot] == ""
}

// HowGone says how a boot of Gone went, such as "dead (proof: …)".
func (v *View) HowGone(boot pin.BootID) string {
	how := string(v.Gone[boot])
	for _, d := range v.departed {
		if d.node.Boot == boot && d.why != "" {
			return how + " (" + d.why + ")"
		}
	}
	return how
}

// GoneNode is a boot that is gone, with the time by this process's clock and the reason in words. Its Node has no more than Role, ID, Boot
// and Version.
type GoneNode struct {
	Node Node
	How  Departure
	At   time.Time
	Why  string
}

// GoneNodes returns the boots of Gone, the oldest first.
func (v *View) GoneNodes() []GoneNode {
	all := make([]GoneNode, 0, len(v.departed))
	for _, d := range v.departed {
		all = append(all, GoneNode{Node: d.node, How: d.how, At: d.at, Why: d.why})
	}
	return all
}

// Departure is the way in which a boot went.
type Departure string

// The ways in which a boot goes.
const (
	// DepartureDead is also that of a boot which a newer one replaced.
	DepartureDead Departure = "dead"
	DepartureLeft Departure = "left"
)

// EventKind is a kind of change.
type EventKind string

// The kinds of changes. A restart is EventDead for the old boot and then EventJoined. All other changes are only in
// the view.
const (
	EventJoined EventKind = "joined"
	EventLeft   EventKind = "left"
	EventDead   EventKind = "dead"
)

// Event is a change of one node, with the node as it was last known.
type Event struct {
	Kind EventKind
	Node Node
	// Why is for logs.
	Why string
}

// Returned reports whether a boot joined that had been taken for dead, as after a frozen process goes on.
func (e Event) Returned() bool { return e.Kind == EventJoined && e.Why == whyReturned }
