package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// The first signaling node's report of a room waits so long for those of the others.
	mergeReports = time.Second
	// A failover of which no signaling node reports is told after so long: each of them reports 5 s after its first client at the latest.
	mergePatience = 8 * time.Second
	// A room that leaves a node so soon after an order to kill the node left because of it.
	killedFor = 30 * time.Second
	// Failovers that wait for reports. Past it their events are told one by one.
	mergeAtMost = 10_000
)

// Failover is one room that went to another node, and what the signaling nodes reported of its clients.
type Failover struct {
	// At is when the room got its new node, by the store's clock.
	At   time.Time   `json:"at"`
	Room ring.RoomID `json:"room"`
	From ring.NodeID `json:"from"`
	To   ring.NodeID `json:"to"`
	// Cause is why, in words.
	Cause string `json:"cause,omitempty"`
	// Peers is how many clients were reported, and Back how many of them have media again. Both are 0 if nobody reported.
	Peers int `json:"peers"`
	Back  int `json:"back"`
	// WorstGapMillis is the longest time without media that a client measured.
	WorstGapMillis int64 `json:"worstGapMs"`
	// Killed says that somebody ordered the death of From.
	Killed bool `json:"killed,omitempty"`
}

// part is what a piece of a failover's sentence tells, for a terminal that has colours.
type part int

// Of a room that went to another node without a death, from is partNode.
const (
	partRoom part = iota
	partDeath
	partNode
	partEvidence
	partTarget
	partBack
	partMissing // fewer are back than were there
)

// Sentence tells the failover in one line, such as "hall: sfu-2 died (killed: stream broken, ports refused) -> sfu-1, 2 of 2 back, worst 0.14 s".
func (f Failover) Sentence() string {
	return f.mark(func(_ part, text string) string { return text })
}

// mark is the sentence with each part as mark shows it.
func (f Failover) mark(mark func(p part, text string) string) string {
	var b strings.Builder
	b.WriteString(mark(partRoom, string(f.Room)) + ": ")
	if evidence, died := strings.CutPrefix(f.Cause, "its process is gone: dead"); died {
		evidence = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(evidence), "("), ")")
		evidence = shortEvidence(evidence)
		switch {
		case f.Killed && evidence != "":
			evidence = "killed: " + evidence
		case f.Killed:
			evidence = "killed"
		}
		b.WriteString(mark(partDeath, string(f.From)+" died") + mark(partEvidence, clause(" (%s)", evidence)))
	} else {
		b.WriteString(mark(partNode, string(f.From)))
	}
	b.WriteString(" -> " + mark(partTarget, string(f.To)))
	if !strings.HasPrefix(f.Cause, "its process is gone: dead") {
		b.WriteString(mark(partEvidence, clause(" (%s)", f.Cause)))
	}
	if f.Peers > 0 {
		back := partBack
		if f.Back < f.Peers {
			back = partMissing
		}
		gap := time.Duration(f.WorstGapMillis) * time.Millisecond
		fmt.Fprintf(&b, ", %s, worst %.2f s", mark(back, fmt.Sprintf("%d of %d back", f.Back, f.Peers)), gap.Seconds())
	}
	return b.String()
}

// shortEvidence says the usual proof of a death in fewer words.
func shortEvidence(evidence string) string {
	return strings.ReplaceAll(strings.TrimPrefix(evidence, "proof: "), "control refused, media refused", "ports refused")
}

// Line is what a person is shown of one or several events.
type Line struct {
	// At is the time of the first of the events, by the store's clock.
	At   time.Time
	Text string
	// Bad says that something died.
	Bad bool
	// failover is what Text tells, or nil if that is something else.
	failover *Failover
}

// takes adds a room_back event, if it belongs to the failover.
func (m *merging) takes(e Event, now time.Time) bool {
	if m.Room != e.Room || m.about != e.About {
		return false
	}
	m.Peers += e.Peers
	m.Back += e.Back
	m.WorstGapMillis = max(m.WorstGapMillis, e.WorstGapMillis)
	if !m.reported {
		m.reported, m.due = true, now.Add(mergeReports)
	}
	return true
}

// Merger makes one Line of a failover, or of a move: of a room_rehomed or room_moved, the room_opened there, and the room_back events with its
// fence. Other events are a Line each. It has no
// clock, and it is not safe for concurrent use. The zero Merger is ready.
type Merger struct {
	open []*merging
	// killed are the latest orders to kill a node, by its name.
	killed map[ring.NodeID]time.Time
	// early are reports of clients that came before the failover they belong to: other nodes write that.
	early []report
	// arrivals are rooms that opened on a node, or moved to it, in the last second.
	arrivals []arrival
}

// report is a room_back event that waits for its failover.
type report struct {
	event Event
	due   time.Time
}

// arrival is a room's new place. Two nodes report it, in any order: the one that opens the room there, and the one that moved it.
type arrival struct {
	room ring.RoomID
	node ring.NodeID
	due  time.Time
	// opened is what to tell unless the room was moved there; nil if it was.
	opened *Line
}

type merging struct {
	Failover
	about string
	due   time.Time
	// bad says that the room lost its node; else it was moved away from it.
	bad bool
	// reported says that a signaling node has told of its clients.
	reported bool
}

func (m *merging) line() Line {
	failover := m.Failover
	return Line{At: m.At, Text: m.Sentence(), Bad: m.bad, failover: &failover}
}

// Add takes an event that was received at now, and returns what can be told.
func (m *Merger) Add(e Event, now time.Time) []Line {
	lines := m.Due(now)
	switch e.Kind {
	case RoomRehomed, RoomMoved:
		m.moved(e, now)
		if len(m.open) < mergeAtMost {
			m.open = append(m.open, &merging{
				Failover: Failover{At: e.At, Room: e.Room, From: e.From, To: e.To, Cause: e.Cause}, about: e.About, due: now.Add(mergePatience),
				bad: e.Kind == RoomRehomed,
			})
			o := m.open[len(m.open)-1]
			o.Killed = m.killedBy(e.From, e.At)
			m.early = slices.DeleteFunc(m.early, func(r report) bool { return o.takes(r.event, now) })
			return lines
		}
	case RoomBack:
		if slices.ContainsFunc(m.open, func(o *merging) bool { return o.takes(e, now) }) {
			return lines
		}
		if len(m.early) < mergeAtMost {
			m.early = append(m.early, report{e, now.Add(mergeReports)})
			return lines
		}
	case RoomOpened:
		if m.opens(e, now) {
			return lines
		}
	case NodeKilled:
		if m.killed == nil || len(m.killed) >= mergeAtMost {
			m.killed = map[ring.NodeID]time.Time{}
		}
		m.killed[e.Node] = e.At
		for _, o := range m.open { // the order may be recorded after the failover
			o.Killed = o.Killed || o.From == e.Node && m.killedBy(o.From, o.At)
		}
	case NodeUp, NodeDown, NodeBack, NodeLeft, NodeDrains, NodeUndrains, RoomClosed, MoveOrdered, PersonRemoved, CallEnded, DoorChanged,
		StoreBack, WebhookLost, LimitReached, RoomSpread, RoomGathered, BranchPromoted:
	}
	return append(lines, Line{At: e.At, Text: e.Sentence(), Bad: e.Kind == NodeDown || e.Kind == RoomRehomed || e.Kind == WebhookLost})
}

// moved leaves out that the room opens at the node to which it was moved.
func (m *Merger) moved(e Event, now time.Time) {
	m.arrivals = slices.DeleteFunc(m.arrivals, func(a arrival) bool { return a.room == e.Room && a.node == e.To })
	if len(m.arrivals) < mergeAtMost {
		m.arrivals = append(m.arrivals, arrival{room: e.Room, node: e.To, due: now.Add(mergeReports)})
	}
}

// opens reports whether the event is told later, or not at all because the room was moved.
func (m *Merger) opens(e Event, now time.Time) bool {
	known := slices.ContainsFunc(m.arrivals, func(a arrival) bool { return a.room == e.Room && a.node == e.Node && a.opened == nil })
	switch {
	case known:
		return true
	case len(m.arrivals) >= mergeAtMost:
		return false
	}
	m.arrivals = append(m.arrivals, arrival{
		room: e.Room, node: e.Node, due: now.Add(mergeReports), opened: &Line{At: e.At, Text: e.Sentence()},
	})
	return true
}

// killedBy reports whether the node's death was ordered at about that time.
func (m *Merger) killedBy(node ring.NodeID, at time.Time) bool {
	ordered, ok := m.killed[node]
	return ok && at.Sub(ordered).Abs() < killedFor
}

// Due returns what waits no longer at now.
func (m *Merger) Due(now time.Time) []Line {
	return m.tell(func(due time.Time) bool { return !now.Before(due) })
}

// Flush returns all that waits.
func (m *Merger) Flush() []Line {
	return m.tell(func(time.Time) bool { return true })
}

func (m *Merger) tell(isDue func(due time.Time) bool) []Line {
	var lines []Line
	m.arrivals = slices.DeleteFunc(m.arrivals, func(a arrival) bool {
		if isDue(a.due) && a.opened != nil {
			lines = append(lines, *a.opened)
		}
		return isDue(a.due)
	})
	m.early = slices.DeleteFunc(m.early, func(r report) bool {
		if isDue(r.due) {
			lines = append(lines, Line{At: r.event.At, Text: r.event.Sentence()})
		}
		return isDue(r.due)
	})
	m.open = slices.DeleteFunc(m.open, func(o *merging) bool {
		if isDue(o.due) {
			lines = append(lines, o.line())
		}
		return isDue(o.due)
	})
	return lines
}
