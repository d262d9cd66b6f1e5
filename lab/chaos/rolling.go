package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// Media nodes come first, as in an upgrade.
func replaceAll(ctx context.Context, c *Chaos, w *World) (heal, error) {
	for _, role := range []devcluster.Role{devcluster.RoleSFU, devcluster.RoleSignaling, devcluster.RoleFront, devcluster.RoleStore} {
		for _, node := range c.nodes(ctx, role) {
			f := Fault{Node: node.Name, Role: node.Role, At: time.Now()}
			if err := c.cluster.Replace(ctx, node.Name); err != nil {
				return nil, fmt.Errorf("replace %s: %w", node.Name, err)
			}
			f.What, f.Seen = fmt.Sprintf("replaced in %.1f s", time.Since(f.At).Seconds()), true
			w.Faults = append(w.Faults, f)
		}
	}
	return func(context.Context) error { return nil }, nil
}

// gapsNote has the longest gap of each synthetic person's streams.
func (c *crowd) gapsNote() string {
	var gaps measure.Sample
	for _, p := range c.people {
		_, shown := p.peer.Shown()
		for _, stream := range shown {
			gaps.Add(stream.LongestGap)
		}
	}
	d := gaps.Distribution()
	return fmt.Sprintf("longest gap of each of %d streams: p50 %.0f, p95 %.0f, max %.0f ms", d.Count, d.P50, d.P95, d.Max)
}
