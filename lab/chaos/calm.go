package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// CalmEnv is the environment of nodes in a calm run: lossy gossip.
func CalmEnv(o Options) []string { return []string{fmt.Sprintf("HOLDFAST_GOSSIP_LOSS=%d", o.Percent)} }

// Any death is a false alarm.
func hurtNobody(_ context.Context, c *Chaos, w *World) (heal, error) {
	w.Faults = []Fault{{Node: "nobody", Role: devcluster.RoleFront, What: "hurt", At: time.Now(), Seen: true}}
	w.Percent = c.options.Percent
	return func(context.Context) error { return nil }, nil
}

func (w *World) calmNote() string {
	down := len(w.logged("node down"))
	return fmt.Sprintf("gossip gave up a media node %d times, which evidence held back; it took %d members out of the views that believe it alone",
		len(w.logged("member suspect"))-down, len(w.logged("member dead"))-down)
}

// GossipWasLossy fails a calm run without loss.
func GossipWasLossy(w *World) Verdict {
	v := verdict("gossip was lossy", fmt.Sprintf("nodes lost %d %% of their gossip", w.Percent))
	if w.Percent > 0 && !slices.ContainsFunc(w.Log, func(e Entry) bool { return e.Msg == lossSaid }) {
		v.broken("no node lost gossip")
	}
	return *v
}

// NothingMoved compares logs and the media nodes' rooms.
func NothingMoved(w *World) Verdict {
	v := verdict("nothing moved", "no room was moved, and none has another node or epoch than before")
	for _, e := range w.logged("room re-homing") {
		v.broken("%s moved %s", e.By, e.Room)
	}
	for _, before := range w.Before.Held {
		for _, after := range w.After.holders(before.Room) {
			if after.Node != before.Node || after.Epoch != before.Epoch {
				v.broken("%s went from %s epoch %d to %s epoch %d", before.Room, before.Node, before.Epoch, after.Node, after.Epoch)
			}
		}
	}
	for _, client := range w.Clients {
		if len(client.Epochs) > 0 {
			v.broken("%s of %s was told to restart %d times", client.Name, client.Room, len(client.Epochs))
		}
	}
	if w.Before.NodesUnknown != "" || w.After.NodesUnknown != "" {
		return v.unchecked("%s%s", w.Before.NodesUnknown, w.After.NodesUnknown)
	}
	return *v
}
