package cluster

import (
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
}

// View is one immutable picture of the cluster. A new one replaces it at every
// change; readers keep theirs as long as they like.
type View struct {
	Version uint64
	Nodes   map[ring.NodeID]Node     // live members of every role, by stable name
	Ring    *ring.Ring               // of the placeable SFU nodes: live, not draining, not doubted, not silent
	Gone    map[pin.BootID]Departure // boots seen to die or leave (bounded; the oldest are forgotten)
	Settled bool                     // the first full gossip exchange has happened (or we are alone by design)
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

// The kinds of events. A restart under the same name is Dead for the old boot,
// then Joined for the new one.
const (
	EventJoined  EventKind = "joined"
	EventUpdated EventKind = "updated" // address, draining; not load
	EventDoubted EventKind = "doubted" // gossip believes it dead; ReportDead confirms, or EventTrusted takes it back
	EventTrusted EventKind = "trusted" // gossip sees a doubted node live again
	EventLeft    EventKind = "left"
	EventDead    EventKind = "dead"
)

// Event is one change of membership. Node is the node as last known.
type Event struct {
	Kind EventKind
	Node Node
	Why  string // for logs: "gossip", "proof", "newer boot"
}
