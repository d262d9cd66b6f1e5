package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// CalmEnv is the environment of nodes in a calm run: lossy gossip, and detection made too fast by a factor.
func CalmEnv(o Options) []string {
	env := []string{fmt.Sprintf("HOLDFAST_GOSSIP_LOSS=%d", o.Percent)}
	if o.Haste > 0 {
		env = append(env, fmt.Sprintf("HOLDFAST_DETECT_HASTE=%g", o.Haste))
	}
	return env
}

// keepBusy hurts nobody: the machine is busy and gossip is lossy. Any death is a false alarm.
func keepBusy(ctx context.Context, c *Chaos, w *World) (heal, error) {
	busy, err := startBurners(ctx, c.options.Burners, c.options.Soak)
	if err != nil {
		return nil, err
	}
	c.say("%d processes keep every core busy for %s", c.options.Burners, c.options.Soak)
	w.Faults = []Fault{{Node: "nobody", Role: devcluster.RoleFront, What: "hurt", At: time.Now(), Seen: true}}
	w.Percent = c.options.Percent
	return func(context.Context) error {
		if w.Busy = busy.end(); c.options.Burners == 0 {
			w.Busy = 1 // nobody wanted it busy
		}
		return nil
	}, nil
}

func (w *World) calmNote() string {
	down := len(w.logged("node down"))
	return fmt.Sprintf("%.0f %% of all cores were busy; gossip gave up a media node %d times, which evidence held back; it took %d members out of the views that believe it alone",
		100*w.Busy, len(w.logged("member suspect"))-down, len(w.logged("member dead"))-down)
}

// WasHard keeps a calm run on an idle machine, or without loss, from passing.
func WasHard(w *World) Verdict {
	const enough = 0.9
	v := verdict("it was hard", fmt.Sprintf("at least %.0f %% of all cores were busy, and nodes lost %d %% of their gossip", 100*enough, w.Percent))
	lossy := false
	for _, e := range w.Log { // nodes say so at their start
		lossy = lossy || e.Msg == lossSaid
	}
	if w.Percent > 0 && !lossy {
		v.broken("no node lost gossip")
	}
	switch {
	case w.Busy < 0:
		return v.unchecked("how busy the machine was is not known here")
	case w.Busy < enough:
		v.broken("the cores were busy for %.0f %% of the time", 100*w.Busy)
	}
	return *v
}

// NothingMoved reads logs, and what the media nodes hold.
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
