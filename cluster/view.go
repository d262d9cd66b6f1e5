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
	ID          ring.NodeID
	Boot        pin.BootID
	Role        Role
	Control     string
	Media       string
	HTTP        string // of signaling nodes
	Draining    bool   // off the ring
	Overdue     bool   // past its deadline: rooms restart
	Suspect     bool   // reported dead, unconfirmed; off the ring
	Unreachable bool   // not heard here; off the ring if others are left
	Later       bool   // of a later version, partly read
	Load        Load

	Protocol     uint32 // of the control port; 0: too old
	Capabilities string // control.Capabilities, separated by commas
	MediaIPs     string // for clients, separated by commas; empty: Media's
	Version      string // of its build; empty: too old to say
}

// MediaSockets are where clients send.
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

// Load is a node's report; a signaling node's has only Seq and Sockets.
type Load struct {
	Seq                     uint64 // grows with each report
	EgressBitsPerSecond     uint64 // the larger of sent and reserved
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	// Synced has the incarnations in which all its pins are confirmed.
	Synced   pin.Incarnations
	Watchers uint32
	Sockets  uint32
	// Floor: with all rooms at their lowest layers.
	FloorBitsPerSecond    uint64
	FloorPacketsPerSecond uint64
	// Limited: seconds since pictures are held back; 0: none.
	Limited uint32
}

// Name survives restarts.
type Name struct {
	Role Role
	ID   ring.NodeID
}

// Name returns the node's.
func (n Node) Name() Name { return Name{n.Role, n.ID} }

// View is the cluster at one moment. It is immutable.
type View struct {
	Version   uint64
	Nodes     map[ring.NodeID]Node // media nodes
	Signaling map[ring.NodeID]Node
	Ring      *ring.Ring // media nodes that are not Draining, Suspect or Unreachable
	Gone      map[pin.BootID]Departure
	Settled   bool
	SettledAt time.Time // zero before

	departed []departure // the source of Gone
}

// At least rejoinEvery.
const absentFor = 30 * time.Second

// Absent means that a view settled for absentFor has the boot neither live nor gone.
func (v *View) Absent(id ring.NodeID, boot pin.BootID) bool {
	return !v.SettledAt.IsZero() && time.Since(v.SettledAt) >= absentFor && v.Nodes[id].Boot != boot && v.Gone[boot] == ""
}

// HowGone says how a boot of Gone went: "dead (proof: ...)".
func (v *View) HowGone(boot pin.BootID) string {
	how := string(v.Gone[boot])
	for _, d := range v.departed {
		if d.node.Boot == boot && d.why != "" {
			return how + " (" + d.why + ")"
		}
	}
	return how
}

// Departure is how a boot went.
type Departure string

// The ways to go.
const (
	DepartureDead Departure = "dead" // or replaced by a newer boot
	DepartureLeft Departure = "left"
)

// EventKind is a kind of change.
type EventKind string

// A restart is Dead for the old boot, then Joined. Other changes are only in the view.
const (
	EventJoined EventKind = "joined"
	EventLeft   EventKind = "left"
	EventDead   EventKind = "dead"
)

// Event has the node as last known.
type Event struct {
	Kind EventKind
	Node Node
	Why  string // for logs
}
