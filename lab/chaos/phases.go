package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/measure"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// The steps of clients, in their order.
const (
	stepRestart = string(peer.StepRestart)
	stepOffer   = string(peer.StepOffer)
	stepAnswer  = string(peer.StepAnswer)
	stepICE     = string(peer.StepICE)
	stepDTLS    = string(peer.StepDTLS)
	stepFirst   = string(peer.StepFirst)
)

// phaseNames are where a gap's time goes, in order. A phase ends with the step
// that is named: the edge says "node down", the pin stands, the client hears
// `restart`, sends its offer, gets the answer, a pair works, keys are there, and the
// first packet or frame of anybody comes.
func phaseNames() []string {
	return []string{"detect", "claim", "tell", stepOffer, stepAnswer, stepICE, stepDTLS, stepFirst}
}

// ClientGap is one client of a room that had to move.
type ClientGap struct {
	Client  string             `json:"client"`
	Room    string             `json:"room"`
	Browser bool               `json:"browser"`
	GapsMs  []float64          `json:"gapsMs"`            // from the fault to the first packet, or frame, of each stream on the new node
	Missing int                `json:"missing,omitempty"` // streams that did not come back
	Phases  map[string]float64 `json:"phasesMs"`          // of the first stream's gap
}

// entry is one line of a signaling node's log that matters here.
type entry struct {
	Time time.Time `json:"time"`
	Msg  string    `json:"msg"`
	Node string    `json:"node"`
	Room string    `json:"room"`
}

// logs reads the steps of failover out of the signaling nodes' logs. A log that
// cannot be had costs the phases, not the gaps.
func (c *Chaos) logs(ctx context.Context) []entry {
	var all []entry
	for _, edge := range c.edges(ctx) {
		text, err := c.cluster.Logs(ctx, edge)
		if err != nil {
			continue
		}
		all = append(all, parseLog(text)...)
	}
	return all
}

// parseLog keeps the lines it knows; others, and halves of lines, it passes over.
func parseLog(text string) []entry {
	var all []entry
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Msg {
		case "node down", "room re-homed":
			all = append(all, e)
		}
	}
	return all
}

// firstLogged is the earliest line since the fault.
func firstLogged(logs []entry, since time.Time, msg string, match func(entry) bool) time.Time {
	var at time.Time
	for _, e := range logs {
		if e.Msg == msg && !e.Time.Before(since) && match(e) && (at.IsZero() || e.Time.Before(at)) {
			at = e.Time
		}
	}
	return at
}

// measureGaps tells the gaps of those whose room had to move. The fault that counts for a
// room is that of the node it was on.
func measureGaps(w *World, logs []entry) []ClientGap {
	if !w.Expect.Moves {
		return nil
	}
	var all []ClientGap
	for _, client := range w.Clients {
		fault, struck := w.faultOf(client.Room)
		if !struck {
			continue
		}
		down := firstLogged(logs, fault.At, "node down", func(e entry) bool { return e.Node == fault.Node })
		claimed := firstLogged(logs, fault.At, "room re-homed", func(e entry) bool { return e.Room == client.Room })
		all = append(all, gapOf(client, fault.At, down, claimed))
	}
	return all
}

// faultOf is the fault of the media node that a room was on.
func (w *World) faultOf(room string) (Fault, bool) {
	for _, h := range w.Before.holders(room) {
		for _, f := range w.Faults {
			if f.Role == devcluster.RoleSFU && f.Node == h.Node {
				return f, true
			}
		}
	}
	return Fault{}, false
}

// gapOf joins a client's own times with the cluster's. A step that was reached more than
// once (a second attempt) counts by its last time before the first media; one that nobody
// saw has no phase of its own, and its time is in the next.
func gapOf(client Client, fault, down, claimed time.Time) ClientGap {
	g := ClientGap{Client: client.Name, Room: client.Room, Browser: client.Browser, Phases: make(map[string]float64)}
	reached := map[string]time.Time{"detect": down, "claim": claimed}
	came := make(map[string]bool)
	for _, m := range client.Moments {
		switch {
		case m.At.Before(fault):
		case m.Step == stepFirst && came[m.Stream]:
		case m.Step == stepFirst:
			came[m.Stream] = true
			g.GapsMs = append(g.GapsMs, measure.Milliseconds(m.At.Sub(fault)))
			if reached[stepFirst].IsZero() {
				reached[stepFirst] = m.At
			}
		case m.Step == stepRestart:
			reached["tell"] = m.At
		case reached[stepFirst].IsZero():
			reached[m.Step] = m.At
		}
	}
	g.Missing = max(client.Streams-len(g.GapsMs), 0)
	if reached[stepFirst].IsZero() {
		return g
	}
	at := fault
	for _, name := range phaseNames() {
		if end := reached[name]; end.After(at) {
			g.Phases[name] = measure.Milliseconds(end.Sub(at))
			at = end
		}
	}
	return g
}
