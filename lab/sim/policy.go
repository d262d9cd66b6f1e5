package sim

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover/relief"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// policy chooses a node for each room, by the view of the last load reports.
type policy interface {
	name() string
	begin(w *world)
	// place returns a node or none. lost names the dead node of a room that had one.
	place(number int, lost pin.Pin) int
	closed(number int)
	// reshaped moves what must move when the set of nodes has changed, and counts it.
	reshaped() int
	// relieve moves rooms off hot nodes, every second, and counts them.
	relieve() int
	// spreads says that a large room may be on several nodes.
	spreads() bool
}

// policies are in the order of the table.
func policies() []func() policy {
	return []func() policy{
		func() policy { return &simple{title: "random", choose: random} },
		func() policy { return &simple{title: "least loaded", choose: leastLoaded} },
		func() policy { return &simple{title: "two choices", choose: twoChoices} },
		func() policy { return &plainRing{} },
		func() policy { return &holdfast{} },
	}
}

// simple policies see reports only, and keep a room where it is while its node lives.
type simple struct {
	title  string
	choose func(live []*node, dice *rand.Rand) *node
	world  *world
	live   []*node
	of     *ring.Ring
}

func (p *simple) name() string   { return p.title }
func (p *simple) begin(w *world) { p.world = w }
func (p *simple) closed(int)     {}
func (p *simple) reshaped() int  { return 0 }
func (p *simple) relieve() int   { return 0 }
func (p *simple) spreads() bool  { return false }

func (p *simple) place(int, pin.Pin) int {
	if p.of != p.world.shape {
		p.of, p.live = p.world.shape, p.world.living()
	}
	if len(p.live) == 0 {
		return none
	}
	return p.world.index[p.choose(p.live, p.world.dice).id]
}

func random(live []*node, dice *rand.Rand) *node { return live[dice.IntN(len(live))] }

func twoChoices(live []*node, dice *rand.Rand) *node {
	return lighter(random(live, dice), random(live, dice))
}

func leastLoaded(live []*node, _ *rand.Rand) *node {
	best := live[0]
	for _, n := range live[1:] {
		best = lighter(best, n)
	}
	return best
}

func lighter(a, b *node) *node {
	if b.report.Share(b.ceiling) < a.report.Share(a.ceiling) {
		return b
	}
	return a
}

// plainRing has no pins: a room lives where the ring says, and moves when that changes.
type plainRing struct{ world *world }

func (p *plainRing) name() string   { return "plain ring" }
func (p *plainRing) begin(w *world) { p.world = w }
func (p *plainRing) closed(int)     {}
func (p *plainRing) relieve() int   { return 0 }
func (p *plainRing) spreads() bool  { return false }

func (p *plainRing) place(number int, _ pin.Pin) int {
	owner, ok := p.world.shape.Owner(roomID(number))
	if !ok {
		return none
	}
	return p.world.index[owner]
}

func (p *plainRing) reshaped() (moved int) {
	for number := range p.world.rooms {
		r := &p.world.rooms[number]
		if !r.open || r.on == none || p.world.nodes[r.on].dead {
			continue
		}
		if to := p.place(number, pin.Pin{}); to != r.on {
			p.world.take(number)
			p.world.put(number, to)
			moved++
		}
	}
	return moved
}

// holdfast is the product: an Orchestrator for each signaling node, over one store.
type holdfast struct {
	world *world
	store memory
	makes []*orchestrator.Orchestrator
	epoch time.Time // of the virtual clock
	cools *relief.Relief
	under []relieving
}

func (p *holdfast) name() string  { return "holdfast" }
func (p *holdfast) reshaped() int { return 0 }
func (p *holdfast) spreads() bool { return true }

func (p *holdfast) begin(w *world) {
	p.world, p.store = w, memory{}
	config := orchestrator.DefaultConfig()
	config.StoreBudget = time.Hour // a pause of this machine is none of the cluster
	config.Epsilon = w.Epsilon
	p.epoch, p.cools = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), relief.New(relief.DefaultConfig())
	config.Clock = func() time.Time { return p.epoch.Add(w.now) }
	for range w.Signaling {
		p.makes = append(p.makes, orchestrator.New(p.store, w, nobody{}, config, slog.New(slog.DiscardHandler)))
	}
}

func (p *holdfast) closed(number int) { delete(p.store, roomID(number)) }

// Most media nodes would refuse one room only; four tries are what a join makes.
const tries = 4

func (p *holdfast) place(number int, lost pin.Pin) int {
	by := p.makes[p.world.dice.IntN(len(p.makes))]
	id, expect := roomID(number), p.world.rooms[number].expect()
	var stands pin.Pin
	var err error
	if lost.IsZero() {
		stands, err = by.Place(context.Background(), id, expect)
	} else {
		stands, err = by.Rehome(context.Background(), id, p.store[id], expect)
	}
	for range tries {
		if err != nil {
			break
		}
		on := p.world.index[stands.Node]
		if n := p.world.nodes[on]; headroom.Takes(n.load, p.world.first(expect, n), n.ceiling) {
			by.Opened(id, n.id, n.seq+1)
			return on
		}
		stands, err = by.PlaceAgain(context.Background(), id, stands, expect) // the media node has the last word
	}
	if err == nil || lost.IsZero() {
		delete(p.store, id)
	}
	return none
}

// first is what a media node counts for a room at first.
func (w *world) first(expect headroom.Room, n *node) headroom.Egress {
	if w.expects() == 0 {
		return expect.Cost()
	}
	return expect.First(n.ceiling)
}

// expect is what a signaling node knows: of a room that ran, what it sent.
func (r *room) expect() headroom.Room {
	if c := r.crowd; c != nil && r.on != none {
		return headroom.Room{People: max(c.people[r.on], 1), Measured: true, Sent: c.sends(r.on), Running: true}
	} else if c != nil {
		return headroom.Expect(r.expected)
	}
	if r.filled {
		return headroom.Room{People: r.people, Measured: true, Sent: r.cost()}
	}
	return headroom.Expect(r.expected)
}

var errNobody = errors.New("nobody is asked in a simulation")

// nobody is never asked: every boot is known.
type nobody struct{}

func (nobody) BootAt(context.Context, string) (pin.BootID, error) { return "", errNobody }

func (nobody) Holds(context.Context, string, ring.RoomID) (pin.Pin, error) {
	return pin.Pin{}, errNobody
}

// memory is a store that never fails.
type memory map[ring.RoomID]pin.Pin

const incarnation pin.Incarnation = 1

func (m memory) Claim(_ context.Context, id ring.RoomID, p pin.Pin, _ string) (pin.Pin, pin.Incarnation, error) {
	if stands, ok := m[id]; ok {
		return stands, incarnation, nil
	}
	m[id] = p
	return p, incarnation, nil
}

func (m memory) Swap(_ context.Context, id ring.RoomID, old, next pin.Pin, _ string) (pin.Pin, pin.Incarnation, error) {
	if m[id] == old {
		m[id] = next
	}
	return m[id], incarnation, nil
}

func (m memory) History(context.Context, ring.RoomID) ([]pin.Change, error) { return nil, nil }

func (m memory) Get(_ context.Context, id ring.RoomID) (pin.Pin, bool, error) {
	p, ok := m[id]
	return p, ok, nil
}

func (m memory) Repair(context.Context, ring.RoomID, string, pin.Pin) (pin.Pin, error) {
	return pin.Pin{}, errors.ErrUnsupported
}

func (m memory) Enter(context.Context, ring.RoomID, pin.Pin, string, waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	return pin.Pin{}, 0, waitlist.Answer{}, errors.ErrUnsupported
}

// View is what every signaling node sees: loads as last reported.
func (w *world) View() *cluster.View { return w.view }

func (w *world) living() (live []*node) {
	for _, n := range w.nodes {
		if !n.dead {
			live = append(live, n)
		}
	}
	return live
}

func (w *world) reportLoads() {
	for _, n := range w.nodes {
		n.report, n.seq = n.load, n.seq+1
	}
	w.show()
}

// show makes the view of the last reports.
func (w *world) show() {
	view := &cluster.View{Nodes: make(map[ring.NodeID]cluster.Node, len(w.nodes)), Gone: maps.Clone(w.gone), Settled: true}
	var ids []ring.NodeID
	can := "" // without a large room, rooms are placed whole
	if w.expects() > 0 {
		can = control.CapabilityBranch
	}
	synced := pin.IncarnationsOf([]pin.Incarnation{incarnation})
	for _, n := range w.living() {
		ids = append(ids, n.id)
		view.Nodes[n.id] = cluster.Node{ID: n.id, Boot: n.boot, Role: cluster.RoleSFU, Control: string(n.id), Capabilities: can, Load: cluster.Load{
			Seq: n.seq, EgressBitsPerSecond: n.report.BitsPerSecond, EgressPacketsPerSecond: n.report.PacketsPerSecond,
			FloorBitsPerSecond: n.report.BitsPerSecond, FloorPacketsPerSecond: n.report.PacketsPerSecond, // pictures have one layer
			CeilingBitsPerSecond: n.ceiling.BitsPerSecond, CeilingPacketsPerSecond: n.ceiling.PacketsPerSecond,
			Rooms: uint32(len(n.rooms)), Synced: synced,
		}}
	}
	if w.shape == nil || !slices.Equal(w.shape.Nodes(), slices.Sorted(slices.Values(ids))) {
		w.shape = ring.New(ids)
	}
	view.Ring, view.Signaling = w.shape, make(map[ring.NodeID]cluster.Node, w.Signaling)
	for i := range w.Signaling {
		id := ring.NodeID("signaling-" + strconv.Itoa(i+1))
		view.Signaling[id] = cluster.Node{ID: id, Role: cluster.RoleSignaling}
	}
	w.view = view
}
