package sim

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	tick = time.Second
	// A room has all its people after this; before, two.
	fillsIn = 10 * time.Second
	none    = -1
)

type node struct {
	id      ring.NodeID
	boot    pin.BootID
	ceiling headroom.Egress
	load    headroom.Egress // sent, and reserved for those who are expected
	sent    headroom.Egress // the media alone
	report  headroom.Egress // load, when it last reported
	seq     uint64          // of that report
	crowd   headroom.Egress // the large room's part of load and of sent
	rooms   map[int]struct{}
	rack    int
	dead    bool
}

type room struct {
	people   int
	expected int     // by its token; 0: not told
	activity float64 // of what so many people may send
	life     time.Duration
	on       int // node, or none
	open     bool
	filled   bool
	crowd    *crowd // of the large room
}

// world is one run of a scenario by one policy.
type world struct {
	Scenario
	policy    policy
	now       time.Duration
	nodes     []*node
	index     map[ring.NodeID]int
	rooms     []room
	dice      *rand.Rand // of the policy
	fills     map[time.Duration][]int
	ends      map[time.Duration][]int
	opens     map[time.Duration]int
	crowd     *crowd                // nil before its first person
	come      map[time.Duration]int // people to the crowd
	leave     map[time.Duration]int
	placeless []int // rooms that found no place
	gone      map[pin.BootID]cluster.Departure
	view      *cluster.View
	shape     *ring.Ring // of view
	result    Result
}

func (w *world) start() {
	w.index, w.gone = make(map[ring.NodeID]int), make(map[pin.BootID]cluster.Departure)
	w.fills, w.ends, w.opens = make(map[time.Duration][]int), make(map[time.Duration][]int), make(map[time.Duration]int)
	w.come, w.leave = make(map[time.Duration]int), make(map[time.Duration]int)
	for _, k := range w.Nodes {
		w.join(k)
	}
}

func (w *world) join(k Kind) {
	for range k.Count {
		i := len(w.nodes)
		id := ring.NodeID("sfu-" + strconv.Itoa(i+1))
		n := &node{
			id: id, boot: pin.BootID("boot-" + string(id)), rooms: make(map[int]struct{}),
			// The packets of a ceiling are never what limits: 1,000 bits each.
			ceiling: headroom.Egress{BitsPerSecond: k.Ceiling, PacketsPerSecond: k.Ceiling / 1000},
		}
		if w.Racks > 0 {
			n.rack = i % w.Racks
		}
		w.index[id], w.nodes = i, append(w.nodes, n)
	}
	w.shape = nil
}

type size struct {
	share         float64
	least, beyond int
}

// A meeting has two people most often, and hundreds rarely.
func sizes() []size {
	return []size{{0.45, 2, 3}, {0.35, 3, 6}, {0.14, 6, 13}, {0.05, 13, 51}, {0.01, 51, 301}}
}

// meeting is the same for every policy.
func (w *world) meeting(number int, seed uint64) room {
	dice := rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // a simulation
	r := room{on: none, open: true, activity: 0.3 + 0.7*dice.Float64(), people: 2}
	draw := dice.Float64()
	for _, s := range sizes() {
		if draw < s.share {
			r.people = s.least + dice.IntN(s.beyond-s.least)
			break
		}
		draw -= s.share
	}
	if dice.IntN(2) == 0 {
		r.expected = r.people // half of the applications say so
	}
	r.life = time.Duration(math.Round(dice.ExpFloat64()*w.Lifetime.Seconds())) * time.Second
	return r
}

// cost is what the room sends now.
func (r *room) cost() headroom.Egress {
	if r.crowd != nil {
		return headroom.Egress{} // its nodes count it themselves
	}
	people := r.people
	if !r.filled {
		people = 2
	}
	return headroom.Expect(people).Cost().Part(r.activity)
}

// charge is what its node counts: a room that fills is charged for those who are expected.
func (r *room) charge() headroom.Egress {
	if r.filled {
		return r.cost()
	}
	return r.cost().Max(headroom.Expect(r.expected).Cost())
}

func roomID(number int) ring.RoomID { return ring.RoomID("room-" + strconv.Itoa(number)) }

func (w *world) run(ctx context.Context, seed uint64, progress func(time.Duration)) error {
	w.start()
	w.policy.begin(w)
	events := w.Events
	for w.now = 0; w.now <= w.End; w.now += tick {
		if err := ctx.Err(); err != nil {
			return err
		}
		progress(w.now)
		if w.now%w.Reports == 0 {
			w.reportLoads()
		}
		for len(events) > 0 && events[0].At <= w.now {
			w.happen(events[0])
			events = events[1:]
		}
		w.passTime(seed)
		w.crowds()
		moved := w.policy.relieve()
		w.sample()
		w.result.Relieved += moved
		if last := len(w.result.Changes) - 1; last >= 0 {
			w.result.Changes[last].Relieved += moved
		}
	}
	return nil
}

// passTime fills, ends and opens what is due.
func (w *world) passTime(seed uint64) {
	for _, number := range w.fills[w.now] {
		if r := &w.rooms[number]; r.open {
			home := r.on
			w.take(number)
			r.filled = true
			w.put(number, home)
		}
	}
	for _, number := range w.ends[w.now] {
		if r := &w.rooms[number]; r.open {
			w.policy.closed(number)
			w.take(number)
			r.open = false
			w.opens[w.now]++
		}
	}
	waited := w.placeless
	w.placeless = nil
	for _, number := range waited {
		if w.rooms[number].open {
			w.settle(number, pin.Pin{})
		}
	}
	for range w.opens[w.now] {
		number := len(w.rooms)
		r := w.meeting(number, seed)
		w.rooms = append(w.rooms, r)
		w.fills[w.now+fillsIn] = append(w.fills[w.now+fillsIn], number)
		if w.Lifetime > 0 {
			at := w.now + max(r.life, tick)
			w.ends[at] = append(w.ends[at], number)
		}
		w.settle(number, pin.Pin{})
	}
	delete(w.fills, w.now)
	delete(w.ends, w.now)
	delete(w.opens, w.now)
}

// settle places a room; without a place it asks again in the next second.
func (w *world) settle(number int, lost pin.Pin) {
	on := w.policy.place(number, lost)
	if on == none {
		w.placeless = append(w.placeless, number)
		w.result.Refusals++
		return
	}
	w.put(number, on)
}

func (w *world) put(number, on int) {
	r := &w.rooms[number]
	if r.on = on; on == none {
		return
	}
	n := w.nodes[on]
	n.rooms[number] = struct{}{}
	n.load, n.sent = n.load.Plus(r.charge()), n.sent.Plus(r.cost())
}

func (w *world) take(number int) {
	r := &w.rooms[number]
	if r.on == none {
		return
	}
	n := w.nodes[r.on]
	delete(n.rooms, number)
	n.load, n.sent = n.load.Minus(r.charge()), n.sent.Minus(r.cost())
	r.on = none
}

func (w *world) happen(e Event) {
	switch e.What {
	case "rooms", "crowd", "leave":
		seconds, to := max(int(e.Within/tick), 1), map[string]map[time.Duration]int{"rooms": w.opens, "crowd": w.come, "leave": w.leave}[e.What]
		for i := range seconds {
			to[w.now+time.Duration(i)*tick] += e.Count*(i+1)/seconds - e.Count*i/seconds
		}
	case "join":
		w.join(e.Kind)
		w.reportLoads()
		w.changed(e, w.policy.reshaped())
	case "die":
		dice := rand.New(rand.NewPCG(uint64(e.At), 1)) //nolint:gosec // a simulation; the same for every policy
		var dying []int
		for _, i := range dice.Perm(len(w.nodes)) {
			if len(dying) < e.Count && !w.nodes[i].dead {
				dying = append(dying, i)
			}
		}
		w.die(e, dying)
	case "rack":
		var dying []int
		for i, n := range w.nodes {
			if n.rack == e.Count && !n.dead {
				dying = append(dying, i)
			}
		}
		w.die(e, dying)
	}
}

// die moves the rooms of the dead, the largest audience first.
func (w *world) die(e Event, dying []int) {
	var lost []int
	for _, i := range dying {
		n := w.nodes[i]
		n.dead, w.gone[n.boot] = true, cluster.DepartureDead
		for number := range n.rooms {
			lost = append(lost, number)
		}
	}
	slices.SortFunc(lost, func(a, b int) int { return cmp.Or(w.rooms[b].people-w.rooms[a].people, a-b) })
	w.shape = nil
	w.show()
	began := time.Now()
	alsoMoved := w.policy.reshaped()
	for _, number := range lost {
		home := w.policy.place(number, w.pinOf(number))
		w.take(number)
		if home == none {
			w.placeless = append(w.placeless, number)
			w.result.Refusals++
		}
		w.put(number, home)
	}
	took := time.Since(began)
	w.changed(e, alsoMoved)
	last := &w.result.Changes[len(w.result.Changes)-1]
	last.Lost, last.Took = len(lost), took
}

func (w *world) pinOf(number int) pin.Pin {
	n := w.nodes[w.rooms[number].on]
	return pin.Pin{Node: n.id, Boot: n.boot}
}

func (w *world) changed(e Event, alsoMoved int) {
	w.result.Changes = append(w.result.Changes, Change{At: e.At, What: e.String(), AlsoMoved: alsoMoved})
}
