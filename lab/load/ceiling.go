package load

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
)

const egressInterval = 500 * time.Millisecond

// NodeEgress is what a media node sent, by its own measurement of each room.
type NodeEgress struct {
	Node                 ring.NodeID `json:"node"`
	CeilingBitsPerSecond uint64      `json:"ceilingBitsPerSecond"`
	MostBitsPerSecond    uint64      `json:"mostBitsPerSecond"`
	// OverSeconds is the longest time in a row above the ceiling.
	OverSeconds float64 `json:"overSeconds"`

	over, longest time.Duration
}

// ceilings watches what the media nodes of a development cluster send.
type ceilings struct {
	options Options
	nodes   map[ring.NodeID]*NodeEgress
}

// run looks until ctx ends and leaves out looks that fail.
func (c *ceilings) run(ctx context.Context) error {
	last := time.Now()
	for c.options.Cluster != nil && backoff.Sleep(ctx, egressInterval) {
		if sent, limits, err := c.look(ctx); err == nil {
			c.count(sent, limits, time.Since(last))
			last = time.Now()
		}
	}
	return nil
}

func (c *ceilings) look(ctx context.Context) (sent, limits map[ring.NodeID]uint64, err error) {
	nodes, err := c.options.Cluster.NodesAt(ctx, c.options.URL)
	if err != nil {
		return nil, nil, err
	}
	rooms, err := c.options.Cluster.RoomsAt(ctx, c.options.URL)
	if err != nil {
		return nil, nil, err
	}
	sent, limits = make(map[ring.NodeID]uint64), make(map[ring.NodeID]uint64)
	for _, n := range nodes {
		if n.CeilingBitsPerSecond > 0 {
			limits[ring.NodeID(n.Node)] = n.CeilingBitsPerSecond
		}
	}
	for _, room := range rooms {
		sent[ring.NodeID(room.Node)] += room.EgressBitsPerSecond
	}
	return sent, limits, nil
}

// count adds one look; since is the time from the one before it.
func (c *ceilings) count(sent, limits map[ring.NodeID]uint64, since time.Duration) {
	for id, limit := range limits {
		n := c.nodes[id]
		if n == nil {
			n = &NodeEgress{Node: id}
			c.nodes[id] = n
		}
		n.CeilingBitsPerSecond, n.MostBitsPerSecond = limit, max(n.MostBitsPerSecond, sent[id])
		if sent[id] <= limit {
			n.over = 0
			continue
		}
		n.over += since
		n.longest = max(n.longest, n.over)
	}
}

func (c *ceilings) report() []NodeEgress {
	var all []NodeEgress
	for _, n := range c.nodes {
		n.OverSeconds = round2(n.longest.Seconds())
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b NodeEgress) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
