// Package suspicion decides which rooms go on at their standbys because their media node is silent for a moment. That proves nothing, so it moves only
// rooms whose people notice nothing of a move: if the node was only slow, nothing is lost.
//
// It promises that a silence of everything is blamed on the observer, that a suspicion moves a bounded number of rooms, and that suspicions are rare. It
// reads no clock, and does not know how a silence is measured, what a move is, or whether it succeeded. A reader begins with Next.
package suspicion

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Config states the bounds. DefaultConfig has the reasons.
type Config struct {
	// A node is suspected when it was not heard for Silence, or half as long again as the longest pause that it ended itself in the last Window
	// or two, and a question has waited for Unanswered. Pauses of twice Silence are failures, and do not count.
	Silence, Unanswered time.Duration
	// A node that was not heard for Late is no longer heard well. Nodes whose silences began within Together of each other fell silent at once.
	Late, Together time.Duration
	// Rooms is how many rooms one suspicion moves.
	Rooms int
	// Most is how many suspicions there are in a Window, and one of them for each node.
	Most   int
	Window time.Duration
}

// DefaultConfig has the values of the binary.
func DefaultConfig() Config {
	return Config{
		// A node with a standby sends a heartbeat every 100 ms, so two are missing. A node on a machine of load 22 was silent for 308 ms. The question is asked when the first is Late.
		Silence: 300 * time.Millisecond, Unanswered: 120 * time.Millisecond, Late: 150 * time.Millisecond,
		// A death is proven or believed within about this time, so an older silence is another matter.
		Together: time.Second,
		// A small deployment's node has fewer rooms. The rest of a larger one waits for the proof, as without a standby.
		Rooms: 64,
		// A machine that stutters more often than this is not helped by moves.
		Most: 3, Window: time.Minute,
	}
}

// Node is a media node as the observer hears it.
type Node struct {
	ID ring.NodeID
	// Silence is since it was heard, and Unanswered since the first unanswered question, or 0.
	Silence, Unanswered time.Duration
}

// Room is one on a node.
type Room struct {
	ID ring.RoomID
	// Standby is the node where all of its connections go on, or nothing.
	Standby ring.NodeID
	People  int
}

// Move takes a room to its standby.
type Move struct {
	Room ring.RoomID
	To   ring.NodeID
}

// Suspicion remembers the last suspicions, and the nodes' pauses. It is for one goroutine.
type Suspicion struct {
	cfg     Config
	last    []suspected
	rhythms map[ring.NodeID]rhythm
	// together is when nodes last were silent together. A silence from before that time is the observer's, until the node is heard.
	together time.Duration
}

type suspected struct {
	node ring.NodeID
	at   time.Duration
}

// rhythm is how regularly a node is heard. silence is the one that was seen last, at the time at. longest is the longest pause that the node has ended
// since the time since, and before is that of the Window before.
type rhythm struct{ silence, at, longest, before, since time.Duration }

// New returns one that has suspected nobody.
func New(cfg Config) *Suspicion {
	return &Suspicion{cfg: cfg, rhythms: map[ring.NodeID]rhythm{}, together: -cfg.Window}
}

// Next returns the node that is suspected at the time now, and the rooms that leave it, the largest first; there are none if nobody is suspected.
// onTime is for how long the observer has run without a pause. rooms lists the rooms of a node.
func (s *Suspicion) Next(now, onTime time.Duration, nodes []Node, rooms func(ring.NodeID) []Room) (node Node, moves []Move) {
	if slices.ContainsFunc(nodes, func(n Node) bool { return n.Silence >= s.cfg.Late && !s.alone(n, nodes) }) {
		s.together = now
	}
	s.note(now, nodes)
	if onTime < s.cfg.Silence {
		return Node{}, nil
	}
	i := slices.IndexFunc(nodes, func(n Node) bool {
		return n.Silence >= s.patience(n.ID) && n.Unanswered >= s.cfg.Unanswered && now-n.Silence > s.together
	})
	if i < 0 || !s.may(now, nodes[i].ID) {
		return Node{}, nil
	}
	heard := map[ring.NodeID]bool{}
	for _, n := range nodes {
		heard[n.ID] = n.Silence < s.cfg.Late
	}
	able := slices.DeleteFunc(slices.Clone(rooms(nodes[i].ID)), func(r Room) bool { return !heard[r.Standby] })
	slices.SortFunc(able, func(a, b Room) int { return cmp.Or(cmp.Compare(b.People, a.People), cmp.Compare(a.ID, b.ID)) })
	for _, r := range able[:min(len(able), s.cfg.Rooms)] {
		moves = append(moves, Move{r.ID, r.Standby})
	}
	if len(moves) == 0 {
		return Node{}, nil
	}
	s.last = append(s.last, suspected{nodes[i].ID, now})
	return nodes[i], moves
}

// note takes in which nodes have been heard since the last time.
func (s *Suspicion) note(now time.Duration, nodes []Node) {
	known := map[ring.NodeID]rhythm{}
	for _, n := range nodes {
		r, seen := s.rhythms[n.ID]
		if !seen {
			r.since = now
		}
		switch {
		case now-r.since >= 2*s.cfg.Window:
			r.longest, r.before, r.since = 0, 0, now
		case now-r.since >= s.cfg.Window:
			r.longest, r.before, r.since = 0, r.longest, now
		}
		// A pause that began before nodes were silent together is the observer's.
		if n.Silence < r.silence && r.silence < 2*s.cfg.Silence && r.at-r.silence > s.together {
			r.longest = max(r.longest, r.silence)
		}
		r.silence, r.at = n.Silence, now
		known[n.ID] = r
	}
	s.rhythms = known
}

// patience is how long a node may be silent: one on a busy machine for longer than one that keeps time.
func (s *Suspicion) patience(node ring.NodeID) time.Duration {
	r := s.rhythms[node]
	return max(s.cfg.Silence, max(r.longest, r.before)*3/2)
}

// alone reports whether no other node fell silent together with n. Else the observer was starved or cut off.
func (s *Suspicion) alone(n Node, nodes []Node) bool {
	return !slices.ContainsFunc(nodes, func(other Node) bool {
		return other.ID != n.ID && other.Silence >= s.cfg.Late && (n.Silence-other.Silence).Abs() < s.cfg.Together
	})
}

// may reports whether the bounds allow a suspicion of the node now.
func (s *Suspicion) may(now time.Duration, node ring.NodeID) bool {
	s.last = slices.DeleteFunc(s.last, func(l suspected) bool { return now-l.at >= s.cfg.Window })
	return len(s.last) < s.cfg.Most && !slices.ContainsFunc(s.last, func(l suspected) bool { return l.node == node })
}
