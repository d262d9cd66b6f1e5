package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Death is a media node that a signaling node took for dead.
type Death struct {
	Node string
	By   string // the signaling node
	At   time.Time
}

// deaths reads in the signaling nodes' logs whom they took for dead.
func (c *Chaos) deaths(ctx context.Context, since time.Time) ([]Death, error) {
	var all []Death
	for _, edge := range c.edges(ctx) {
		text, err := c.cluster.Logs(ctx, edge)
		if err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", edge, err)
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e entry
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.Msg == "node down" && !e.Time.Before(since) {
				all = append(all, Death{Node: e.Node, By: edge, At: e.Time})
			}
		}
	}
	return all, nil
}

// NoFalseDeath reads the signaling nodes' logs.
func NoFalseDeath(w *World) Verdict {
	v := verdict("no false death", "no signaling node takes a node for dead that was neither killed, frozen nor cut off")
	if w.DeathsUnknown != "" {
		return v.unchecked("%s", w.DeathsUnknown)
	}
	for _, d := range w.Deaths {
		if !w.Expect.Stays && slices.ContainsFunc(w.Faults, func(f Fault) bool { return f.Node == d.Node }) {
			continue
		}
		v.broken("%s took %s for dead %s after the fault", d.By, d.Node, d.At.Sub(w.first()).Round(time.Millisecond))
	}
	return *v
}

// MediaGoesOn looks at every stream while packets were lost or late, or blocked between nodes.
func MediaGoesOn(w *World) Verdict {
	return undisturbed(w, "media goes on", fmt.Sprintf("while packets are lost, late or blocked no stream pauses for more than %s, and nobody makes a new connection but in a room that has to move", longestPause))
}
