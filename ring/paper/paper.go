// Package paper works out on paper what a ring of some size does: how evenly it
// spreads rooms, and how many move when nodes are added. It promises the same figures
// for the same plan everywhere, as text, JSON and SVG. It computes with package ring
// and knows no cluster: headroom, pins and live nodes are not in it.
package paper

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/ring"
)

// These bounds keep the work of one plan below a fraction of a second.
const (
	MaxNodes = 1000
	MaxRooms = 1_000_000

	maxPrefixBytes = 64
)

// Plan describes a cluster: the rooms room-0 to room-(Rooms-1) on the nodes <Prefix>-1 to <Prefix>-<Nodes>, and the
// number of nodes to be added.
type Plan struct {
	Nodes  int
	Rooms  int
	Add    int
	Prefix string
}

// Validate returns every fault of the plan at once, each as a sentence.
func (p Plan) Validate() error {
	var faults []error
	if p.Nodes < 1 {
		faults = append(faults, fmt.Errorf("a ring needs at least 1 node, not %d", p.Nodes))
	}
	if p.Rooms < 1 || p.Rooms > MaxRooms {
		faults = append(faults, fmt.Errorf("the number of rooms must be from 1 to %d, not %d", MaxRooms, p.Rooms))
	}
	if p.Add < 0 {
		faults = append(faults, fmt.Errorf("nodes can only be added, not %d of them", p.Add))
	}
	if p.Nodes > MaxNodes || p.Add > MaxNodes || p.Nodes+p.Add > MaxNodes {
		faults = append(faults, fmt.Errorf("a ring on paper has at most %d nodes, the added ones included", MaxNodes))
	}
	if len(p.Prefix) > maxPrefixBytes || strings.ContainsFunc(p.Prefix, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError }) {
		faults = append(faults, fmt.Errorf("the prefix of the nodes' names must be at most %d printable bytes, not %q", maxPrefixBytes, p.Prefix))
	}
	return errors.Join(faults...)
}

// Report is the result of a plan. Shares are between 0 and 1, rounded to four decimals.
type Report struct {
	Nodes        int          `json:"nodes"`
	VirtualNodes int          `json:"virtualNodes"`
	Rooms        int          `json:"rooms"`
	Before       Distribution `json:"distribution"`
	// Growth is nil if the plan adds no nodes.
	Growth *Growth `json:"growth,omitempty"`
}

// Distribution says how many rooms each node owns.
type Distribution struct {
	Shares []Share `json:"nodes"`
	// Spread is (most-least)/mean of the nodes' rooms.
	Spread float64 `json:"spread"`
	// MaxOverMean is the busiest node's rooms divided by the mean.
	MaxOverMean float64 `json:"maxOverMean"`
}

// Share is what one node owns.
type Share struct {
	Node  ring.NodeID `json:"node"`
	Rooms int         `json:"rooms"`
	// Share is the node's part of all rooms.
	Share float64 `json:"share"`
}

// Growth says what the added nodes change.
type Growth struct {
	Added      []ring.NodeID `json:"added"`
	Remapped   int           `json:"remapped"`
	RemapShare float64       `json:"remapShare"`
	// ExpectedShare is the added nodes divided by all nodes.
	ExpectedShare float64      `json:"expectedShare"`
	After         Distribution `json:"distribution"`
}

// Compute returns the report of a plan.
func Compute(p Plan) (Report, error) {
	if err := p.Validate(); err != nil {
		return Report{}, err
	}
	nodes := make([]ring.NodeID, p.Nodes+p.Add)
	for i := range nodes {
		nodes[i] = ring.NodeID(fmt.Sprintf("%s-%d", p.Prefix, i+1))
	}
	rooms := make([]ring.RoomID, p.Rooms)
	for i := range rooms {
		rooms[i] = ring.RoomID(fmt.Sprintf("room-%d", i))
	}
	before := ring.New(nodes[:p.Nodes])
	r := Report{
		Nodes: p.Nodes, VirtualNodes: ring.VirtualNodes, Rooms: p.Rooms,
		Before: distribute(before, nodes[:p.Nodes], rooms),
	}
	if p.Add == 0 {
		return r, nil
	}
	// The added nodes come last in nodes, so the ring before has only the others.
	after := ring.New(nodes)
	remapped := len(ring.Moves(before, after, rooms))
	r.Growth = &Growth{
		Added:         nodes[p.Nodes:],
		Remapped:      remapped,
		RemapShare:    round(float64(remapped) / float64(p.Rooms)),
		ExpectedShare: round(float64(p.Add) / float64(len(nodes))),
		After:         distribute(after, nodes, rooms),
	}
	return r, nil
}

func distribute(r *ring.Ring, nodes []ring.NodeID, rooms []ring.RoomID) Distribution {
	counts := make(map[ring.NodeID]int, len(nodes))
	for _, room := range rooms {
		owner, _ := r.Owner(room)
		counts[owner]++
	}
	least, most := len(rooms), 0
	d := Distribution{Shares: make([]Share, len(nodes))}
	for i, node := range nodes {
		n := counts[node]
		least, most = min(least, n), max(most, n)
		d.Shares[i] = Share{Node: node, Rooms: n, Share: round(float64(n) / float64(len(rooms)))}
	}
	mean := float64(len(rooms)) / float64(len(nodes))
	d.Spread, d.MaxOverMean = round(float64(most-least)/mean), round(float64(most)/mean)
	return d
}

func round(x float64) float64 { return math.Round(x*10_000) / 10_000 }
