package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// Calm hurts nobody: the machine is kept busy and gossip is lossy for a while, and no signaling node
// may take anybody for dead. Everything it counts is a false alarm.
const Calm Name = "calm"

// calmLook is how often the cluster is looked at, and its logs are read before they are too long to be kept.
const calmLook = 5 * time.Second

// lossSaid is what a node logs that loses gossip because it was told to.
const lossSaid = "gossip datagrams are thrown away on purpose"

// CalmEnv is the environment of a cluster's nodes: lossy gossip, and detection that is so many times too fast.
func CalmEnv(o Options) []string {
	env := []string{fmt.Sprintf("HOLDFAST_GOSSIP_LOSS=%d", o.Percent)}
	if o.Haste > 0 {
		env = append(env, fmt.Sprintf("HOLDFAST_DETECT_HASTE=%g", o.Haste))
	}
	return env
}

// alarms are what the logs of a cluster say of deaths.
type alarms struct {
	lossy      map[string]bool     // nodes that said that they lose gossip
	seen       map[string]struct{} // lines that were counted
	down       []Death             // media nodes that a signaling node took for dead
	moved      []string            // rooms that were moved
	suspicions int                 // gossip gave up a media node, and evidence held it back
	gossip     int                 // members that gossip's word alone took out of somebody's view
}

// calm lets people be for a while, on a busy machine, and judges.
func (c *Chaos) calm(ctx context.Context, report *Report) error {
	w := &World{Expect: Expect{Stays: true}}
	if err := c.settled(ctx, w, time.Now()); err != nil {
		return fmt.Errorf("the cluster is not whole before it: %w", err)
	}
	w.Before = w.After
	c.crowd.mark()
	busy, err := startBurners(ctx, c.options.Burners, c.options.Soak)
	if err != nil {
		return err
	}
	defer busy.end()
	began := time.Now()
	w.Faults = []Fault{{Node: "nobody", Role: devcluster.RoleFront, What: "hurt", At: began, Seen: true}}
	heard := &alarms{lossy: map[string]bool{}, seen: map[string]struct{}{}}
	pauses := newPauses()
	c.say("%d processes keep %s busy for %s", c.options.Burners, "every core", c.options.Soak)
	for ctx.Err() == nil && time.Since(began) < c.options.Soak {
		backoff.Sleep(ctx, min(calmLook, c.options.Soak-time.Since(began)))
		pauses.see(c.crowd.flows(), time.Now())
		if look := c.look(ctx); len(w.Between) < maxLooks {
			w.Between = append(w.Between, look)
		}
		if err := c.hear(ctx, heard, began); err != nil {
			w.DeathsUnknown = err.Error()
		}
	}
	w.Until = time.Now()
	share := busy.end()
	if ctx.Err() != nil {
		return nil
	}
	settled := c.settled(ctx, w, time.Now()) // its complaint shows in the verdicts
	if err := c.hear(ctx, heard, began); err != nil {
		w.DeathsUnknown = err.Error()
	}
	w.Deaths, w.Pauses = heard.down, pauses.longest()
	w.Clients = c.crowd.clients(ctx, w)
	trial := &Trial{
		Number: 1, Scenario: Calm, Began: began, FullestShare: w.fullest(), Faults: w.Faults, Clients: nil,
		Verdicts: []Verdict{c.wasBusy(share, heard), NoFalseDeath(w), noRoomMoved(w, heard), OneOwner(w), EpochsGrow(w), NoOrphan(w), EverybodyReceives(w)},
		Note: fmt.Sprintf("%.0f %% of all cores were busy; gossip gave up a media node %d times, which evidence held back; it took %d members out of the views that believe it alone",
			100*share, heard.suspicions-len(heard.down), heard.gossip-len(heard.down)),
		HealthyPausesMs: float64(w.healthyPause().Milliseconds()),
	}
	if settled != nil {
		trial.Note += "; not settled: " + settled.Error()
	}
	report.Trials = append(report.Trials, trial)
	c.say("%s\n%s", trial.line(), trial.Note)
	return nil
}

// hear reads every node's log for what was said since the beginning, each line once.
func (c *Chaos) hear(ctx context.Context, heard *alarms, since time.Time) error {
	for _, n := range c.nodes(ctx) {
		if n.Role != devcluster.RoleSignaling && n.Role != devcluster.RoleSFU {
			continue
		}
		text, err := c.cluster.Logs(ctx, n.Name)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", n.Name, err)
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			heard.line(n.Name, lines.Text(), since)
		}
	}
	return nil
}

// line takes one line of a node's log.
func (a *alarms) line(by, text string, since time.Time) {
	var e entry
	if json.Unmarshal([]byte(text), &e) != nil {
		return
	}
	if e.Msg == lossSaid {
		a.lossy[by] = true
	}
	if _, counted := a.seen[by+text]; counted || e.Time.Before(since) {
		return
	}
	switch e.Msg {
	case "node down":
		a.down = append(a.down, Death{Node: e.Node, By: by, At: e.Time})
	case "room re-homing":
		a.moved = append(a.moved, fmt.Sprintf("%s moved %s", by, e.Room))
	case "member suspect":
		a.suspicions++
	case "member dead":
		a.gossip++
	default:
		return
	}
	a.seen[by+text] = struct{}{}
}

// wasBusy keeps a run on an idle machine, or without loss, from passing.
func (c *Chaos) wasBusy(share float64, heard *alarms) Verdict {
	const enough = 0.9
	v := verdict("it was hard", fmt.Sprintf("at least %.0f %% of all cores were busy, and every node lost %d %% of its gossip", 100*enough, c.options.Percent))
	if c.options.Percent > 0 && len(heard.lossy) == 0 {
		v.broken("no node lost gossip")
	}
	switch {
	case share < 0:
		return v.unchecked("how busy the machine was is not known here")
	case c.options.Burners > 0 && share < enough:
		v.broken("the cores were busy for %.0f %% of the time", 100*share)
	}
	return *v
}

// noRoomMoved reads logs, and what the media nodes hold.
func noRoomMoved(w *World, heard *alarms) Verdict {
	v := verdict("nothing moved", "no room was moved, and none has another node or epoch than before")
	for _, moved := range heard.moved {
		v.broken("%s", moved)
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
	if w.Before.Deaf != "" || w.After.Deaf != "" {
		return v.unchecked("%s%s", w.Before.Deaf, w.After.Deaf)
	}
	return *v
}
