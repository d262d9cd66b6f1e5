package cluster

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Role is what a process does in the cluster.
type Role string

// The roles.
const (
	RoleSFU       Role = "sfu"
	RoleSignaling Role = "signaling"
)

func (r Role) known() bool { return r == RoleSFU || r == RoleSignaling }

// Node is one live member.
type Node struct {
	ID          ring.NodeID
	Boot        pin.BootID
	Role        Role
	Control     string // host:port of the control service (SFU only)
	Media       string // host:port of the UDP media socket (SFU only)
	HTTP        string // host:port of the HTTP service (signaling only)
	Draining    bool   // takes no new rooms; off the ring
	Suspect     bool   // gossip believes it dead, unconfirmed (Config.ConfirmDeaths); off the ring
	Unreachable bool   // this process does not hear it (SetUnreachable); off the ring if that leaves others
	Load        Load   // the latest load report (SFU only)
}

// Load is an SFU node's report about itself.
type Load struct {
	Seq                     uint64 // grows by one per report of a boot
	EgressBitsPerSecond     uint64 // max of what is sent and what open rooms reserve
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64 // configured; 0 before the first report
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	// Synced are the store incarnations under which all pins of the node's rooms were confirmed.
	Synced   pin.Incarnations
	Watchers uint32 // signaling nodes with a Watch stream to the node
}

// Name is what a restart keeps. Nodes of different roles may share an id.
type Name struct {
	Role Role
	ID   ring.NodeID
}

// Name returns the name of the node.
func (n Node) Name() Name { return Name{n.Role, n.ID} }

// View is the cluster at one moment. It is immutable.
type View struct {
	Version   uint64
	Nodes     map[ring.NodeID]Node     // live media nodes, by stable name
	Signaling map[ring.NodeID]Node     // live signaling nodes, by stable name
	Ring      *ring.Ring               // of the live media nodes that are not Draining, Suspect or Unreachable
	Gone      map[pin.BootID]Departure // boots that died or left; at most maxGone, for goneFor
	Settled   bool                     // the first full gossip exchange has happened, or Config.Solo
	SettledAt time.Time                // when; zero before

	departed []departure // the source of Gone, for state exchanges
}

// absentFor must be at least rejoinEvery, in which a member finds its cluster again.
const absentFor = 30 * time.Second

// Absent reports whether a view that settled absentFor ago has the boot neither live nor gone. By then
// it has heard of every live boot.
func (v *View) Absent(id ring.NodeID, boot pin.BootID) bool {
	return !v.SettledAt.IsZero() && time.Since(v.SettledAt) >= absentFor && v.Nodes[id].Boot != boot && v.Gone[boot] == ""
}

// Departure is how a boot went away.
type Departure string

// The ways to go.
const (
	DepartureDead Departure = "dead" // by gossip (and confirmed, with Config.ConfirmDeaths), by proof, or replaced by a newer boot
	DepartureLeft Departure = "left" // by its own leave message
)

// EventKind is a kind of change; a death or leave has the text of its Departure.
type EventKind string

// The kinds of events. A restart under the same name is Dead for the old boot, then Joined for the
// new one. Other changes are only in the view.
const (
	EventJoined EventKind = "joined"
	EventLeft   EventKind = "left"
	EventDead   EventKind = "dead"
)

// Event is one change of membership, with the node as last known.
type Event struct {
	Kind EventKind
	Node Node
	Why  string // for logs: "gossip", "newer boot", "proof: ..."
}
