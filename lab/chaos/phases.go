package chaos

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/measure"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A client does not see these first phases.
const (
	stepDetect peer.Step = "detect"
	stepClaim  peer.Step = "claim"
	stepTell   peer.Step = "tell"
)

// Each phase ends with the step that it names.
func phases() []peer.Step {
	return []peer.Step{stepDetect, stepClaim, stepTell, peer.StepOffer, peer.StepAnswer, peer.StepICE, peer.StepDTLS, peer.StepFirst}
}

// ClientGap is one client of a room that had to move.
type ClientGap struct {
	Client  string                `json:"client"`
	Room    string                `json:"room"`
	Browser bool                  `json:"browser"`
	GapsMs  []float64             `json:"gapsMs"`            // from the fault to each stream's first packet or frame on the new node
	Missing int                   `json:"missing,omitempty"` // streams that never came back
	Silent  bool                  `json:"silent,omitempty"`  // by a standby, without an offer
	Phases  map[peer.Step]float64 `json:"phasesMs"`          // of the first stream's gap
}

func (w *World) firstLogged(since time.Time, msg string, match func(Entry) bool) time.Time {
	var at time.Time
	for _, e := range w.Log {
		if e.Msg == msg && !e.Time.Before(since) && match(e) && (at.IsZero() || e.Time.Before(at)) {
			at = e.Time
		}
	}
	return at
}

// measureGaps covers clients whose room had to move.
func measureGaps(w *World) []ClientGap {
	if !w.Expect.Moves {
		return nil
	}
	var all []ClientGap
	for _, client := range w.Clients {
		fault, struck := w.faultOf(client)
		if !struck {
			continue
		}
		ofNode := func(e Entry) bool { return e.Node == fault.Node }
		down := w.firstLogged(fault.At, "node down", ofNode)
		if silent := w.firstLogged(fault.At, "node silent: rooms go on at their standbys", ofNode); !silent.IsZero() {
			down = silent
		}
		claimed := w.firstLogged(fault.At, "room re-homed", func(e Entry) bool { return e.Room == client.Room })
		all = append(all, gapOf(client, fault.At, down, claimed))
	}
	return all
}

func (c Client) took(step peer.Step, since time.Time) bool {
	return slices.ContainsFunc(c.Moments, func(m peer.Moment) bool { return m.Step == step && !m.At.Before(since) })
}

func (w *World) faultOf(client Client) (Fault, bool) {
	var nodes []string
	if w.Spread.is(client.Room) {
		nodes = []string{w.Spread.At[client.Name]}
	} else {
		nodes = nodesOf(w.Before.holders(client.Room))
	}
	for _, f := range w.Faults {
		if f.Role == devcluster.RoleSFU && slices.Contains(nodes, f.Node) {
			return f, true
		}
	}
	return Fault{}, false
}

// gapOf joins a client's times with the cluster's. The last attempt at a step before media counts. A missing step's time is in the next.
func gapOf(client Client, fault, down, claimed time.Time) ClientGap {
	g := ClientGap{Client: client.Name, Room: client.Room, Browser: client.Browser, Phases: make(map[peer.Step]float64)}
	reached := map[peer.Step]time.Time{stepDetect: down, stepClaim: claimed}
	came, heard := make(map[peer.StreamID]bool), false
	for _, m := range client.Moments {
		sound := m.Stream.Source == wire.SourceMicrophone
		switch {
		case m.At.Before(fault):
		case m.Step == peer.StepFirst && (came[m.Stream] || sound && heard && client.FewSlots):
		case m.Step == peer.StepFirst:
			came[m.Stream], heard = true, heard || sound
			g.GapsMs = append(g.GapsMs, measure.Milliseconds(m.At.Sub(fault)))
			if reached[peer.StepFirst].IsZero() {
				reached[peer.StepFirst] = m.At
			}
		case m.Step == peer.StepRestart:
			reached[stepTell] = m.At
		case reached[peer.StepFirst].IsZero():
			reached[m.Step] = m.At
		}
	}
	g.Silent = client.took(peer.StepContinued, fault) && !client.took(peer.StepOffer, fault)
	g.Missing = max(client.Streams-len(g.GapsMs), 0)
	if reached[peer.StepFirst].IsZero() {
		return g
	}
	at := fault
	for _, name := range phases() {
		if end := reached[name]; end.After(at) {
			g.Phases[name] = measure.Milliseconds(end.Sub(at))
			at = end
		}
	}
	return g
}
