package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

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
	if c.options.Cluster == nil {
		return nil
	}
	tick := time.NewTicker(egressInterval)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if sent, limits, err := c.look(ctx); err == nil {
				c.count(sent, limits, now.Sub(last))
				last = now
			}
		}
	}
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

func (r *Report) writeNodes(text *strings.Builder) {
	if len(r.Nodes) == 0 {
		return
	}
	rooms := make(map[ring.NodeID]int)
	for _, room := range r.Rooms {
		rooms[room.LastNode]++
	}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "media node\trooms\tmost sent, Mbit/s\tceiling\tover it for, s\t\n")
	for _, n := range r.Nodes {
		fmt.Fprintf(table, "%s\t%d\t%.1f\t%.1f\t%.1f\t\n", n.Node, rooms[n.Node], float64(n.MostBitsPerSecond)/1e6, float64(n.CeilingBitsPerSecond)/1e6, n.OverSeconds)
	}
	_ = table.Flush() // into a strings.Builder
	text.WriteString("\n")
}
