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
}

// Sentence tells the failover in one line, such as "hall: sfu-2 died (stream broken, ports refused) -> sfu-1, 2 of 2 back, worst 0.14 s".
func (f Failover) Sentence() string {
	var b strings.Builder
	if evidence, died := strings.CutPrefix(f.Cause, "its process is gone: dead"); died {
		evidence = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(evidence), "("), ")")
		evidence = strings.ReplaceAll(strings.TrimPrefix(evidence, "proof: "), "control refused, media refused", "ports refused")
		fmt.Fprintf(&b, "%s: %s died%s -> %s", f.Room, f.From, clause(" (%s)", evidence), f.To)
	} else {
		fmt.Fprintf(&b, "%s: %s -> %s%s", f.Room, f.From, f.To, clause(" (%s)", f.Cause))
	}
	if f.Peers > 0 {
		gap := time.Duration(f.WorstGapMillis) * time.Millisecond
		fmt.Fprintf(&b, ", %d of %d back, worst %.2f s", f.Back, f.Peers, gap.Seconds())
	}
	return b.String()
}

// Line is what a person is shown of one or several events.
type Line struct {
	// At is the time of the first of the events, by the store's clock.
	At   time.Time
	Text string
	// Bad says that something died.
	Bad bool
}

// Merger makes one Line of a failover: of a room_rehomed and the room_back events with its fence. Other events are a Line each. It has no
// clock, and it is not safe for concurrent use. The zero Merger is ready.
type Merger struct {
	open []*merging
}

type merging struct {
	Failover
	about string
	due   time.Time
	// reported says that a signaling node has told of its clients.
	reported bool
}

func (m *merging) line() Line { return Line{At: m.At, Text: m.Sentence(), Bad: true} }

// Add takes an event that was received at now, and returns what can be told.
func (m *Merger) Add(e Event, now time.Time) []Line {
	lines := m.Due(now)
	switch e.Kind {
	case RoomRehomed:
		if len(m.open) < mergeAtMost {
			m.open = append(m.open, &merging{
				Failover: Failover{At: e.At, Room: e.Room, From: e.From, To: e.To, Cause: e.Cause}, about: e.About, due: now.Add(mergePatience),
			})
			return lines
		}
	case RoomBack:
		i := slices.IndexFunc(m.open, func(o *merging) bool { return o.Room == e.Room && o.about == e.About })
		if i >= 0 {
			o := m.open[i]
			o.Peers += e.Peers
			o.Back += e.Back
			o.WorstGapMillis = max(o.WorstGapMillis, e.WorstGapMillis)
			if !o.reported {
				o.reported, o.due = true, now.Add(mergeReports)
			}
			return lines
		}
	case NodeUp, NodeDown, NodeLeft, NodeDrains, NodeUndrains, RoomOpened, RoomMoved, RoomClosed, MoveOrdered, PersonRemoved, CallEnded, DoorChanged,
		NodeKilled, StoreBack, WebhookLost:
	}
	return append(lines, Line{At: e.At, Text: e.Sentence(), Bad: e.Kind == NodeDown || e.Kind == RoomRehomed || e.Kind == WebhookLost})
}

// Due returns the failovers that wait no longer at now.
func (m *Merger) Due(now time.Time) []Line {
	return m.tell(func(o *merging) bool { return !now.Before(o.due) })
}

// Flush returns all failovers that wait.
func (m *Merger) Flush() []Line {
	return m.tell(func(*merging) bool { return true })
}

func (m *Merger) tell(due func(*merging) bool) []Line {
	var lines []Line
	m.open = slices.DeleteFunc(m.open, func(o *merging) bool {
		if !due(o) {
			return false
		}
		lines = append(lines, o.line())
		return true
	})
	return lines
}
