package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Look is the cluster at one moment, seen from outside.
type Look struct {
	At           time.Time
	Live         map[pin.BootID]ring.NodeID // the SFU boots that a signaling node sees
	Held         []Held                     // by every live SFU node
	Loads        map[ring.NodeID]Load       // by the SFU nodes' last reports
	Pins         map[string]pin.Pin         // by room
	Rosters      map[string]Roster          // by room, of those asked for
	NodesUnknown string                     // why Held is not whole; empty = it is
	PinsUnknown  string                     // why Pins is not whole; empty = it is
}

// Load is what a media node sends and has reserved, and its ceilings.
type Load = devcluster.AdminLoad

// Held is a room as its media node describes it.
type Held = devcluster.AdminRoom

func (l Look) holders(room string) []Held {
	return slices.DeleteFunc(slices.Clone(l.Held), func(h Held) bool { return h.Room != room })
}

// A frozen node delays the signaling node's answer.
const lookLimit = 5 * time.Second

func (c *Chaos) look(ctx context.Context) Look {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	l := Look{At: time.Now(), Live: make(map[pin.BootID]ring.NodeID), Loads: make(map[ring.NodeID]Load), Pins: make(map[string]pin.Pin)}
	if err := c.askNodes(ctx, &l); err != nil {
		l.NodesUnknown = err.Error()
	}
	if err := c.askStore(ctx, &l); err != nil {
		l.PinsUnknown = err.Error()
	}
	return l
}

func (c *Chaos) askNodes(ctx context.Context, l *Look) error {
	nodes, err := c.cluster.NodesAt(ctx, c.page)
	if err != nil {
		return fmt.Errorf("ask for the nodes: %w", err)
	}
	for _, n := range nodes {
		if n.Role == "sfu" {
			l.Live[pin.BootID(n.Boot)] = ring.NodeID(n.Node)
			l.Loads[ring.NodeID(n.Node)] = n.AdminLoad
		}
	}
	held, err := c.cluster.RoomsAt(ctx, c.page)
	l.Held = slices.DeleteFunc(held, func(h Held) bool { return !c.counts(h.Room) })
	if err != nil {
		return fmt.Errorf("ask for the rooms: %w", err)
	}
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return err
	}
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleSFU && n.State == devcluster.StateRunning && !slices.Contains(slices.Collect(maps.Values(l.Live)), ring.NodeID(n.Name)) {
			return fmt.Errorf("%s runs, and the signaling node that was asked does not see it", n.Name)
		}
	}
	return nil
}

func (c *Chaos) askStore(ctx context.Context, l *Look) error {
	if c.options.Pins == nil {
		return fmt.Errorf("no store is known")
	}
	err := c.options.Pins.AllPins(ctx, func(h pin.Holding) error {
		if c.counts(string(h.Room)) {
			l.Pins[string(h.Room)] = h.Pin
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the pins: %w", err)
	}
	return nil
}

func (c *Chaos) counts(room string) bool {
	return strings.HasPrefix(room, c.prefix()) && !c.crowd.left[room]
}

func (c *Chaos) prefix() string { return fmt.Sprintf("chaos-%x-", c.options.Seed) }
