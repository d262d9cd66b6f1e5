package spread

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const step = 100 * time.Millisecond

// world carries out what Spread orders. Loads are reported twice a second, appointments are answered late, and moves take seconds.
type world struct {
	t       fataler
	s       *Spread
	limits  Limits
	now     time.Time
	ceiling headroom.Egress
	person  headroom.Egress
	link    headroom.Egress
	nodes   []*hostNode
	// members are indices of nodes.
	members []int
	// answers is how long a candidate takes, and moveLasts how long somebody who is moved.
	answers, moveLasts time.Duration
	// comesIn is how long a newcomer takes.
	comesIn time.Duration
	waiting []time.Time
	moving  []journey
	// shift is added to the load of all nodes, as a share of the ceiling.
	shift float64

	highest    float64
	most       int
	appointed  int
	gathered   int
	closedNode int
	moved      int
	longest    time.Duration
	full       int
}

type hostNode struct {
	id            ring.NodeID
	others        headroom.Egress
	people        int
	silent        int
	load          headroom.Egress // as reported
	up            time.Time       // when it answers
	refuses, dead bool
	draining      bool
}

// nobody is where newcomers come from.
const nobody = -1

type journey struct {
	from, to int
	people   int
	ends     time.Time
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func standardLimits() Limits { return Limits{PeersPerNode: 1000, PeersPerRoom: 5000} }

func newWorld(t fataler, nodes int, limits Limits) *world {
	w := &world{
		t: t, s: New(limits), limits: limits, now: time.Unix(1_000_000, 0), answers: 20 * time.Millisecond, moveLasts: time.Second,
		comesIn: 200 * time.Millisecond, members: []int{0},
		ceiling: headroom.Egress{BitsPerSecond: 800_000_000, PacketsPerSecond: 100_000},
		person:  headroom.Egress{BitsPerSecond: 2_120_000, PacketsPerSecond: 360},
		link:    headroom.Egress{BitsPerSecond: 18_500_000, PacketsPerSecond: 3_600},
	}
	for i := range nodes {
		w.nodes = append(w.nodes, &hostNode{id: ring.NodeID(fmt.Sprintf("sfu-%02d", i))})
	}
	w.report()
	return w
}

func (w *world) index(id ring.NodeID) int {
	return slices.IndexFunc(w.nodes, func(n *hostNode) bool { return n.id == id })
}

// sends is what a node sends: for other rooms, for people here and over its links.
func (w *world) sends(i int) headroom.Egress {
	return w.nodes[i].others.Plus(w.roomSends(i)).Plus(w.ceiling.Part(w.shift))
}

func (w *world) links(i int) int {
	switch {
	case !slices.Contains(w.members, i):
		return 0
	case i == w.members[0]:
		return len(w.members) - 1
	default:
		return 0
	}
}

func (w *world) roomSends(i int) headroom.Egress {
	return w.person.Times(uint64(w.nodes[i].people)).Plus(w.link.Times(uint64(w.links(i))))
}

func (w *world) report() {
	for i, n := range w.nodes {
		n.load = w.sends(i)
	}
}

func (w *world) room() Room {
	var r Room
	for k, i := range w.members {
		n := w.nodes[i]
		r.Members = append(r.Members, Member{
			Node: n.id, Boot: pin.BootID("boot-" + string(n.id)), People: n.people, Silent: n.silent, Load: n.load, Ceiling: w.ceiling,
			Room: w.roomSends(i), Links: w.link.Times(uint64(w.links(i))), Up: k == 0 || !n.dead && !w.now.Before(n.up), Draining: n.draining,
		})
	}
	r.Candidates = func() (all []Candidate) {
		for _, n := range w.nodes {
			all = append(all, Candidate{
				Node: n.id, Boot: pin.BootID("boot-" + string(n.id)), Able: true, Draining: n.draining, Suspect: n.dead, Load: n.load, Ceiling: w.ceiling,
			})
		}
		return all
	}
	if w.people() > 0 {
		r.Person = w.person
	}
	return r
}

func (w *world) people() (all int) {
	for _, i := range w.members {
		all += w.nodes[i].people
	}
	return all
}

func (w *world) appoint(a Appoint) {
	w.appointed++
	n := w.nodes[w.index(a.Candidate.Node)]
	if n.refuses || n.dead {
		w.s.Failed(w.now, n.id, "boot-"+pin.BootID(n.id), "it refused")
		return
	}
	n.up, n.people, n.silent = w.now.Add(w.answers), 0, 0
	w.members = append(w.members, w.index(n.id))
}

// ask lets one person in whom a node has, or leaves the person waiting.
func (w *world) ask(since time.Time, canRedirect bool) {
	d := w.s.Newcomer(w.now, w.room(), canRedirect)
	if d.Appoint != nil {
		w.appoint(*d.Appoint)
	}
	switch {
	case d.Full:
		w.full++
	case d.To == "":
		if d.Wait <= 0 {
			w.t.Fatalf("a newcomer has neither a place nor a reason to wait: %+v", d)
		}
		w.waiting = append(w.waiting, since)
	default:
		w.longest = max(w.longest, w.now.Sub(since))
		w.moving = append(w.moving, journey{nobody, w.index(d.To), 1, w.now.Add(w.comesIn)})
	}
}

func (w *world) leave(i, people int) {
	n := w.nodes[i]
	people = min(people, n.people)
	n.people -= people
	n.silent = min(n.silent, n.people)
}

// pass lets time go on by one step, with so many people who come in it.
func (w *world) pass(come int) {
	w.now = w.now.Add(step)
	w.arrive()
	waited := w.waiting
	w.waiting = nil
	for _, since := range waited {
		w.ask(since, true)
	}
	for range come {
		w.ask(w.now, true)
	}
	if w.now.UnixMilli()%Every.Milliseconds() == 0 {
		w.report()
		for _, o := range w.s.Tick(w.now, w.room()) {
			w.carryOut(o)
		}
	}
	w.check()
}

func (w *world) arrive() {
	w.moving = slices.DeleteFunc(w.moving, func(j journey) bool {
		if w.now.Before(j.ends) {
			return false
		}
		to := w.nodes[j.to]
		if j.from == nobody && slices.Contains(w.members, j.to) {
			if to.people++; to.people > 8 || j.to != w.members[0] {
				to.silent++
			}
		}
		if j.from == nobody {
			return true
		}
		from := w.nodes[j.from]
		people := min(j.people, from.people)
		silent := min(people, from.silent)
		from.people, from.silent = from.people-people, from.silent-silent
		to.people, to.silent = to.people+people, to.silent+silent
		w.moved += people
		return true
	})
}

func (w *world) carryOut(o Order) {
	switch o := o.(type) {
	case Appoint:
		w.appoint(o)
	case Gather:
		w.gathered++
	case Move:
		if o.People <= 0 || o.From == o.To {
			w.t.Fatalf("a senseless move: %+v", o)
		}
		w.moving = append(w.moving, journey{w.index(o.From), w.index(o.To), o.People, w.now.Add(w.moveLasts)})
	case Close:
		w.closedNode++
		i := w.index(o.Node)
		if w.nodes[i].people > 0 {
			w.t.Fatalf("%s is closed with %d people", o.Node, w.nodes[i].people)
		}
		w.members = slices.DeleteFunc(w.members, func(m int) bool { return m == i })
	}
}

func (w *world) check() {
	w.most = max(w.most, len(w.members))
	if len(w.members) > 1+MostBranches {
		w.t.Fatalf("%d members", len(w.members))
	}
	for _, i := range w.members {
		if n := w.nodes[i]; n.people > w.limits.PeersPerNode {
			w.t.Fatalf("%s has %d people, at most %d are allowed", n.id, n.people, w.limits.PeersPerNode)
		}
		w.highest = max(w.highest, w.sends(i).Share(w.ceiling))
	}
	if people := w.people(); people > w.limits.PeersPerRoom {
		w.t.Fatalf("the room has %d people, at most %d are allowed", people, w.limits.PeersPerRoom)
	}
}

func (w *world) passFor(d time.Duration) {
	for range d / step {
		w.pass(0)
	}
}

// A thousand people come to default nodes beside other rooms, ten a second. They spread over as few nodes as have headroom, no node gets
// hot, and all are gathered once the crowd has left.
func TestAThousandPeople(t *testing.T) {
	w := newWorld(t, 20, standardLimits())
	for i, n := range w.nodes {
		n.others = w.ceiling.Part([]float64{0.05, 0.20, 0, 0.10, 0.55}[i%5])
	}
	for range 1000 {
		w.pass(1)
	}
	w.passFor(10 * time.Second)
	t.Logf("%d members, highest fill %.3f, %d appointed, %d moved, longest wait %s", w.most, w.highest, w.appointed, w.moved, w.longest)
	if w.people() != 1000 || w.full > 0 || len(w.waiting) > 0 {
		t.Fatalf("%d people have a place, %d found it full, %d wait", w.people(), w.full, len(w.waiting))
	}
	if w.highest > 0.80 || w.most > 9 || w.longest > AppointWait+step {
		t.Errorf("%d members, highest fill %.3f, longest wait %s", w.most, w.highest, w.longest)
	}
	// The crowd leaves evenly, but for about 40 people.
	for w.people() > 40 {
		for _, i := range slices.Clone(w.members) {
			w.leave(i, max(w.nodes[i].people/50, 1))
		}
		w.pass(0)
	}
	w.passFor(6 * time.Minute)
	t.Logf("%d members, %d gathered, %d closed", len(w.members), w.gathered, w.closedNode)
	if people := w.people(); len(w.members) != 1 || people < 30 {
		t.Errorf("%d members, %d people: %+v", len(w.members), w.people(), w.s.Changes())
	}
}
