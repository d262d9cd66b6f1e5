package cluster

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Role is what a process does in the cluster.
type Role string

// The roles that gossip.
const (
	RoleSFU       Role = "sfu"
	RoleSignaling Role = "signaling"
)

func (r Role) known() bool { return r == RoleSFU || r == RoleSignaling }

// Node is one live member as gossip describes it.
type Node struct {
	ID       ring.NodeID
	Boot     pin.BootID
	Role     Role
	Control  string // host:port of the control service (SFU only)
	Media    string // host:port of the UDP media socket (SFU only)
	HTTP     string // host:port of the HTTP service (signaling only)
	Draining bool   // takes no new rooms; leaves the ring
	Doubted  bool   // gossip believes it dead and nobody has confirmed it (Config.Witnessed); off the ring
	Silent   bool   // this process does not hear it (SetSilent); off the ring, unless nobody else would be on it
	Load     Load   // the latest load report heard (SFU only)
}

// Load is what an SFU node measures of itself and says in gossip.
type Load struct {
	Seq                     uint64 // grows by one per report of a boot
	EgressBitsPerSecond     uint64 // max of what is sent and what open rooms have reserved
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64 // configured; 0 means the node said nothing yet
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	// Asserted are the generations of the store under which the node has seen all pins of
	// its rooms standing, or has written them again.
	Asserted pin.Generations
	Watchers uint32 // signaling nodes that watch the node
}

// Name is what a restart keeps. A media node and a signaling node may have one id, as on one host by default.
type Name struct {
	Role Role
	ID   ring.NodeID
}

// Name returns the name of the node.
func (n Node) Name() Name { return Name{n.Role, n.ID} }

// View is one immutable picture of the cluster. A new one replaces it at every
// change; readers keep theirs as long as they like.
type View struct {
	Version   uint64
	Nodes     map[ring.NodeID]Node     // live media nodes, by stable name
	Signaling map[ring.NodeID]Node     // live signaling nodes, by stable name
	Ring      *ring.Ring               // of the placeable media nodes: live, not draining, not doubted, not silent
	Gone      map[pin.BootID]Departure // boots that died or left: at most maxGone, for goneFor
	Settled   bool                     // the first full gossip exchange has happened (or we are alone by design)
	SettledAt time.Time                // when; zero before

	departed []departure // what Gone was made from, for state exchanges
}

// absentFor is how long a settled view must not have known a boot before the boot counts as absent: longer than
// a member takes to find its cluster again (rejoinEvery).
const absentFor = 30 * time.Second

// Absent reports whether the boot is neither live nor gone in a view that settled absentFor ago. Every live boot
// has been heard of by then; one that is also silent at its address has vanished.
func (v *View) Absent(id ring.NodeID, boot pin.BootID) bool {
	return !v.SettledAt.IsZero() && time.Since(v.SettledAt) >= absentFor && v.Nodes[id].Boot != boot && v.Gone[boot] == ""
}

// Departure is how a boot went away.
type Departure string

// The ways to go.
const (
	DepartureDead Departure = "dead" // declared dead by gossip (and confirmed, where the view is witnessed), proven dead, or replaced by a newer boot
	DepartureLeft Departure = "left" // said so itself
)

// EventKind says what happened to a node.
type EventKind string

// The kinds of events. What else changes about a live node, the view alone says. A restart under the same name is Dead for the old boot,
// then Joined for the new one.
const (
	EventJoined EventKind = "joined"
	EventLeft   EventKind = "left"
	EventDead   EventKind = "dead"
)

// Event is one change of membership. Node is the node as last known.
type Event struct {
	Kind EventKind
	Node Node
	Why  string // for logs: "gossip", "proof", "newer boot"
}
