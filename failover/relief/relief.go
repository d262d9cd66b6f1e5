// Package relief chooses which rooms leave a hot media node, and where they go. It is a pure choice on the caller's clock: it
// knows no network, no store and no gossip.
//
// It promises:
//   - A node that is not open, or whose load or ceiling is not known, neither gives rooms nor gets any.
//   - After a move the target is cooler than the source, by Margin.
//   - As few rooms as possible move, and at most AtOnce at a time.
//   - A room that has moved stays for Rest.
package relief

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Config has the bounds of relief. Shares are parts of a node's ceiling. DefaultConfig states the reasons.
type Config struct {
	// A node that is above Hot for HotFor is relieved until it is at Cool.
	Hot, Cool float64
	HotFor    time.Duration
	// A node that is above Least, and by Uneven above the cluster's mean for UnevenFor, is relieved until it is half
	// of Uneven above the mean.
	Uneven, Least float64
	UnevenFor     time.Duration
	// Margin is by how much a target must be cooler than the source after the move.
	Margin float64
	// AtOnce bounds the rooms that move at one time.
	AtOnce int
	// Rest is how long a room stays after a move.
	Rest time.Duration
	// Reported is how long the load reports take to include a move.
	Reported time.Duration
}

// DefaultConfig has the values of the binary.
func DefaultConfig() Config {
	return Config{
		// Hot is below the level at which pictures suffer, and above the 60 % up to which placement fills a node.
		Hot: 0.85, Cool: 0.75, HotFor: 10 * time.Second,
		// Uneven evens out the load after nodes were added.
		Uneven: 0.25, Least: 0.40, UnevenFor: time.Minute,
		// Margin is larger than the error of a load report.
		Margin: 0.05,
		// Every person of a moving room has two connections for some seconds.
		AtOnce: 2,
		Rest:   5 * time.Minute, Reported: 3 * time.Second,
	}
}

// Node is one media node as its load report shows it.
type Node struct {
	ID ring.NodeID
	// Open says that the node is heard and not draining.
	Open          bool
	Load, Ceiling headroom.Egress
	// Limited says that the node holds pictures back for lack of headroom. Such a node counts as hot and is no
	// target.
	Limited bool

	// source is set if a room has left the node lately. Such a node is no target.
	source bool
}

func (n Node) known() bool {
	return n.Open && n.Ceiling.BitsPerSecond > 0 && n.Ceiling.PacketsPerSecond > 0 && n.Load != headroom.Egress{}
}

func (n Node) takes() bool {
	return n.Open && n.Ceiling.BitsPerSecond > 0 && n.Ceiling.PacketsPerSecond > 0
}

// Room is a room that may move. Sends is its measured egress. A room that is Spread over several nodes stays, because its owner moves its
// people off hot nodes.
type Room struct {
	ID     ring.RoomID
	On     ring.NodeID
	Sends  headroom.Egress
	Spread bool
	// Standby is where the room's clients notice nothing of a move, and empty if there is no such node. It is the target if it would be cool enough.
	Standby ring.NodeID
}

// Move names a room to be moved, its two nodes and the reason.
type Move struct {
	Room     ring.RoomID
	From, To ring.NodeID
	Sends    headroom.Egress
	Why      string
}

type begun struct {
	Move
	// ended is zero while the move is under way.
	ended time.Time
}

type heat struct {
	since     time.Time
	relieving bool
}

// Relief remembers which nodes are hot and which rooms have moved. It is not safe for concurrent use.
type Relief struct {
	config      Config
	hot, uneven map[ring.NodeID]heat
	moves       map[ring.RoomID]begun
}

// New returns a Relief that has seen no node yet.
func New(config Config) *Relief {
	return &Relief{config: config, hot: map[ring.NodeID]heat{}, uneven: map[ring.NodeID]heat{}, moves: map[ring.RoomID]begun{}}
}

// Ended tells Relief that a move is over, whether it succeeded or not. It must be called once for each move that Next
// returned.
func (r *Relief) Ended(room ring.RoomID, now time.Time) {
	if m, ok := r.moves[room]; ok && m.ended.IsZero() {
		m.ended = now
		r.moves[room] = m
	}
}

// Next returns the moves to begin now. If rooms is empty, it only remembers which nodes are hot.
func (r *Relief) Next(now time.Time, nodes []Node, rooms []Room) []Move {
	nodes, free := r.reckon(now, nodes)
	mean := share(nodes)
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(heatOf(b), heatOf(a)), cmp.Compare(a.ID, b.ID))
	})
	var out []Move
	for _, n := range nodes {
		to, why := r.line(now, n, mean)
		if why == "" || free == 0 {
			continue
		}
		// The hottest node comes first. Its moves count at once, so that the next node sees the targets' new loads.
		chosen := choose(n.ID, nodes, r.rested(n.ID, rooms), to, r.config)
		for _, m := range chosen[:min(len(chosen), free)] {
			m.Why = why
			r.moves[m.Room] = begun{Move: m}
			out, free = append(out, m), free-1
			nodes = moved(nodes, m)
		}
	}
	return out
}

// reckon adds to the load reports the moves that they do not include yet. It also returns how many more moves may
// begin.
func (r *Relief) reckon(now time.Time, nodes []Node) ([]Node, int) {
	nodes, free := slices.Clone(nodes), r.config.AtOnce
	for room, m := range r.moves {
		underWay := m.ended.IsZero()
		switch {
		case !underWay && now.Sub(m.ended) >= r.config.Rest:
			delete(r.moves, room)
			continue
		case underWay:
			free--
		}
		// A move counts until load reports must include it.
		if underWay || now.Sub(m.ended) < r.config.Reported {
			nodes = moved(nodes, m.Move)
		}
	}
	here := map[ring.NodeID]bool{}
	for _, n := range nodes {
		here[n.ID] = true
	}
	for _, of := range []map[ring.NodeID]heat{r.hot, r.uneven} {
		for id := range of {
			if !here[id] {
				delete(of, id)
			}
		}
	}
	return nodes, max(free, 0)
}

func moved(nodes []Node, m Move) []Node {
	for i, n := range nodes {
		switch n.ID {
		case m.From:
			nodes[i].Load, nodes[i].source = n.Load.Minus(m.Sends), true
		case m.To:
			nodes[i].Load = n.Load.Plus(m.Sends)
		}
	}
	return nodes
}

func share(nodes []Node) float64 {
	var load, ceiling headroom.Egress
	for _, n := range nodes {
		if n.takes() {
			load, ceiling = load.Plus(n.Load), ceiling.Plus(n.Ceiling)
		}
	}
	if ceiling == (headroom.Egress{}) {
		return 0
	}
	return load.Share(ceiling)
}

func heatOf(n Node) float64 {
	if !n.known() {
		return 0
	}
	return n.Load.Share(n.Ceiling)
}

// line returns the share of its ceiling down to which a node is to be relieved, and the reason. An empty reason means
// that the node keeps its rooms.
func (r *Relief) line(now time.Time, n Node, mean float64) (to float64, why string) {
	c, at := r.config, heatOf(n)
	heat := at
	if n.Limited {
		heat = max(at, 1)
	}
	hot := crossed(r.hot, n.ID, now, heat, c.Hot, c.Cool, c.HotFor)
	even := mean + c.Uneven/2
	uneven := crossed(r.uneven, n.ID, now, at, max(mean+c.Uneven, c.Least), max(even, c.Least), c.UnevenFor)
	switch {
	case hot && n.Limited:
		return c.Cool, fmt.Sprintf("it holds pictures back and is at %.0f %% of its ceiling", 100*at)
	case hot:
		return c.Cool, fmt.Sprintf("it was above %.0f %% of its ceiling for %s and is at %.0f %%", 100*c.Hot, c.HotFor, 100*at)
	case uneven:
		return max(even, c.Least), fmt.Sprintf("it is at %.0f %% of its ceiling, the cluster at %.0f %%", 100*at, 100*mean)
	default:
		return 0, ""
	}
}

// crossed reports whether a node has been above upper for long, and has not come down to lower since. The two bounds
// keep a node near one of them from beginning and ending all the time.
func crossed(of map[ring.NodeID]heat, id ring.NodeID, now time.Time, at, upper, lower float64, long time.Duration) bool {
	h, warm := of[id]
	switch {
	case h.relieving && at > lower:
		return true
	case at <= upper:
		delete(of, id)
		return false
	case !warm:
		h.since = now
	}
	h.relieving = now.Sub(h.since) >= long
	of[id] = h
	return h.relieving
}

func (r *Relief) rested(on ring.NodeID, rooms []Room) (out []Room) {
	for _, room := range rooms {
		if _, moved := r.moves[room.ID]; !moved && room.On == on && room.Sends != (headroom.Egress{}) && !room.Spread {
			out = append(out, room)
		}
	}
	return out
}

// choose returns the moves that bring a node down to the share to. It takes the largest rooms first, and as the last
// one the smallest that suffices, so that few rooms move and no more load than needed.
func choose(from ring.NodeID, nodes []Node, rooms []Room, to float64, c Config) (out []Move) {
	nodes = slices.Clone(nodes)
	i := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == from })
	size := func(room Room) float64 { return weight(nodes[i], room) }
	slices.SortFunc(rooms, func(a, b Room) int { return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.ID, b.ID)) })
	for heatOf(nodes[i]) > to {
		best, at := Move{}, -1
		for k, room := range rooms {
			enough := nodes[i].Load.Minus(room.Sends).Share(nodes[i].Ceiling) <= to
			// Rooms are sorted by size. The last one that was enough is the smallest that suffices.
			if at >= 0 && !enough {
				break
			}
			if target, ok := coolest(nodes, i, room, c); ok {
				best, at = Move{Room: room.ID, From: from, To: target, Sends: room.Sends}, k
			}
		}
		if at < 0 {
			return out
		}
		rooms = slices.Delete(slices.Clone(rooms), at, at+1)
		nodes, out = moved(nodes, best), append(out, best)
	}
	return out
}

// weight is the part of a room's egress that counts on this node: packets, if the node has less of them left than of
// bits.
func weight(n Node, room Room) float64 {
	if float64(n.Load.PacketsPerSecond)/float64(n.Ceiling.PacketsPerSecond) > float64(n.Load.BitsPerSecond)/float64(n.Ceiling.BitsPerSecond) {
		return float64(room.Sends.PacketsPerSecond)
	}
	return float64(room.Sends.BitsPerSecond)
}

func coolest(nodes []Node, from int, room Room, c Config) (to ring.NodeID, ok bool) {
	after := nodes[from].Load.Minus(room.Sends).Share(nodes[from].Ceiling)
	least := min(after-c.Margin, c.Cool)
	for k, n := range nodes {
		if k == from || n.source || n.Limited || !n.takes() {
			continue
		}
		with := n.Load.Plus(room.Sends).Share(n.Ceiling)
		if n.ID == room.Standby && with <= min(after-c.Margin, c.Cool) {
			return n.ID, true
		}
		if with < least || with == least && (to == "" || n.ID < to) {
			to, least, ok = n.ID, with, true
		}
	}
	return to, ok
}
