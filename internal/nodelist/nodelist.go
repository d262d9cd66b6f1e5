// Package nodelist reads the answer of GET /nodes, for the commands that show it to people.
//
// It knows no HTTP: callers bring the body of the answer. Begin with Answer.
package nodelist

import "time"

// Answer is the body of GET /nodes.
type Answer struct {
	Nodes []Node `json:"nodes"`
	// Settled says that the signaling node that answered has seen the whole cluster.
	Settled       bool `json:"settled"`
	MixedVersions bool `json:"mixedVersions"`
}

// Node is one node of the answer. Of a node that is gone only Name, Role, State, At, Cause and Version are known.
type Node struct {
	Name  string    `json:"node"`
	Role  string    `json:"role"`
	State string    `json:"state"`
	At    time.Time `json:"at,omitzero"`
	Cause string    `json:"cause,omitempty"`

	// Version is empty if the node is too old to say.
	Version     string `json:"version"`
	Draining    bool   `json:"draining"`
	Suspect     bool   `json:"suspect"`
	Unreachable bool   `json:"unreachable"`

	Rooms                   int    `json:"rooms"`
	Peers                   int    `json:"peers"`
	Sockets                 int    `json:"sockets"`
	EgressBitsPerSecond     uint64 `json:"egressBitsPerSecond"`
	CeilingBitsPerSecond    uint64 `json:"ceilingBitsPerSecond"`
	EgressPacketsPerSecond  uint64 `json:"egressPacketsPerSecond"`
	CeilingPacketsPerSecond uint64 `json:"ceilingPacketsPerSecond"`

	// Stalled counts clients of the signaling node that answered which get nothing from the node.
	Stalled        int      `json:"stalled"`
	LimitedSeconds int      `json:"limitedSeconds"`
	MediaSilent    []string `json:"mediaSilent,omitempty"`
}

// Signaling tells a signaling node from a media node.
func (n *Node) Signaling() bool { return n.Role == "signaling" }

// Gone tells whether the node died or left.
func (n *Node) Gone() bool { return n.State == "dead" || n.State == "left" }

// Condition is one word about the node. The one that an operator has to know first wins.
func (n *Node) Condition() string {
	switch {
	case n.Gone():
		return n.State
	case n.Suspect:
		return "suspect"
	case n.Unreachable:
		return "unreachable"
	case n.Draining:
		return "draining"
	default:
		return "up"
	}
}
