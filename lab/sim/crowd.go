package sim

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

const (
	// The limits of the binary.
	crowdPerNode, crowdPerRoom = 1000, 5000
	// A link between two nodes takes as much of the owner as this many people.
	linkWorth = 10
	// Sound and a full page are measured of so many people.
	pageOf = 10
)

// Crowd is what became of the large room.
type Crowd struct {
	Most      int     `json:"nodesAtMost"`
	Fullest   float64 `json:"fullest"` // load/ceiling of one of its nodes, at the worst moment
	Appointed int     `json:"appointed"`
	Gathered  int     `json:"gathered"`
	Moved     int     `json:"moved"`    // people
	Refused   int     `json:"refused"`  // people who found it full
	Nodes     int     `json:"nodes"`    // at the end
	People    int     `json:"people"`   // at the end
	Flaps     int     `json:"reopened"` // branches that were appointed after one had been gathered
}

// crowd is the large room of a scenario. Under a policy that does not spread rooms all its people are on one node.
type crowd struct {
	number  int // of the room
	members []int
	people  map[int]int // by node
	asleep  map[int]bool
	decides *spread.Spread
	moves   []crowdMove
	waiting int
	result  Crowd
}

type crowdMove struct {
	from, to, people int
	ends             time.Duration
}

func newDecider() *spread.Spread {
	return spread.New(spread.Limits{PeersPerNode: crowdPerNode, PeersPerRoom: crowdPerRoom})
}

func person() headroom.Egress { return headroom.Expect(pageOf).Cost().Part(1. / pageOf) }

// sends is what a node sends for the room.
func (c *crowd) sends(node int) headroom.Egress {
	links := 0
	if len(c.members) > 0 && c.members[0] == node {
		links = len(c.members) - 1
	}
	return person().Times(uint64(c.people[node] + links*linkWorth))
}

func (c *crowd) all() (people int) {
	for _, n := range c.people {
		people += n
	}
	return people
}

// crowds lets people come to the large room and leave it, and has its owner decide.
func (w *world) crowds() {
	come := w.come[w.now]
	if w.crowd == nil && come > 0 {
		w.crowd = &crowd{number: len(w.rooms), people: map[int]int{}, asleep: map[int]bool{}, decides: newDecider()}
		w.rooms = append(w.rooms, room{on: none, open: true, filled: true, expected: w.expects(), crowd: w.crowd})
		w.settle(w.crowd.number, pin.Pin{})
	}
	c := w.crowd
	if c == nil {
		return
	}
	c.waiting += come
	if w.follow(); len(c.members) == 0 {
		return
	}
	for range w.leave[w.now] {
		most := slices.MaxFunc(c.members, func(a, b int) int { return c.people[a] - c.people[b] })
		c.people[most] = max(c.people[most]-1, 0)
	}
	now := time.Unix(0, 0).Add(w.now)
	for range c.waiting {
		c.waiting--
		w.enter(now)
	}
	if w.policy.spreads() {
		w.account()
		for _, o := range c.decides.Tick(now, w.seen()) {
			w.obey(o)
		}
	}
	w.account()
}

// follow notes deaths, moves of the room, moved people who have arrived, and branches that have answered.
func (w *world) follow() {
	c, on := w.crowd, w.rooms[w.crowd.number].on
	clear(c.asleep)
	if on == none {
		return
	}
	if len(c.members) == 0 || c.members[0] != on {
		// The people of the former owner follow the room.
		if len(c.members) > 0 {
			c.people[on] += c.people[c.members[0]]
			delete(c.people, c.members[0])
			c.members = slices.DeleteFunc(c.members[1:], func(m int) bool { return m == on })
			c.decides = newDecider()
			c.moves = nil
		}
		c.members = append([]int{on}, c.members...)
	}
	c.members = slices.DeleteFunc(c.members, func(m int) bool {
		if !w.nodes[m].dead {
			return false
		}
		c.waiting += c.people[m]
		delete(c.people, m)
		c.decides.Failed(time.Unix(0, 0).Add(w.now), w.nodes[m].id, w.nodes[m].boot, "it died")
		return true
	})
	c.moves = slices.DeleteFunc(c.moves, func(m crowdMove) bool {
		people := min(m.people, c.people[m.from])
		if m.ends > w.now {
			return false
		}
		if slices.Contains(c.members, m.to) {
			c.people[m.from], c.people[m.to] = c.people[m.from]-people, c.people[m.to]+people
			c.result.Moved += people
		}
		return true
	})
}

// enter places one person.
func (w *world) enter(now time.Time) {
	c := w.crowd
	if !w.policy.spreads() {
		c.people[c.members[0]]++
		return
	}
	d := c.decides.Newcomer(now, w.seen(), true)
	if d.Appoint != nil {
		w.obey(*d.Appoint)
	}
	switch {
	case d.Full:
		c.result.Refused++
	case d.To == "":
		c.waiting++
	default:
		c.people[w.index[d.To]]++
	}
}

func (w *world) seen() spread.Room {
	c := w.crowd
	room := spread.Room{Person: person(), Candidates: func() []spread.Candidate { return orchestrator.Candidates(w.view, roomID(c.number)) }}
	for i, m := range c.members {
		n := w.nodes[m]
		member := spread.Member{
			Node: n.id, Boot: n.boot, People: c.people[m], Silent: c.people[m], Load: n.sent, Ceiling: n.ceiling, Room: n.crowd, Up: !c.asleep[m],
		}
		if i == 0 {
			member.Links = person().Times(uint64(linkWorth * (len(c.members) - 1)))
		}
		room.Members = append(room.Members, member)
	}
	return room
}

func (w *world) obey(o spread.Order) {
	c := w.crowd
	switch o := o.(type) {
	case spread.Appoint:
		c.result.Appointed++
		if c.result.Gathered > 0 {
			c.result.Flaps++
		}
		m := w.index[o.Candidate.Node]
		// It answers before the next second.
		c.members, c.asleep[m] = append(c.members, m), true
	case spread.Gather:
		c.result.Gathered++
	case spread.Move:
		c.moves = append(c.moves, crowdMove{w.index[o.From], w.index[o.To], o.People, w.now + moveLasts})
	case spread.Close:
		c.members = slices.DeleteFunc(c.members, func(m int) bool { return m == w.index[o.Node] })
	}
}

// account sets what each node sends for the room.
func (w *world) account() {
	c := w.crowd
	for i, n := range w.nodes {
		now := headroom.Egress{}
		if slices.Contains(c.members, i) {
			now = c.sends(i)
			c.result.Fullest = max(c.result.Fullest, n.sent.Minus(n.crowd).Plus(now).Share(n.ceiling))
		}
		n.load, n.sent, n.crowd = n.load.Minus(n.crowd).Plus(now), n.sent.Minus(n.crowd).Plus(now), now
	}
	c.result.Most = max(c.result.Most, len(c.members))
	c.result.Nodes, c.result.People = len(c.members), c.all()
}

// expects is how many people come to the large room in all.
func (w *world) expects() (people int) {
	for _, e := range w.Events {
		if e.What == "crowd" {
			people += e.Count
		}
	}
	return people
}
