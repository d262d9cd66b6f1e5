package sfu

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

func TestReservationsEndAsPeopleAreMeasured(t *testing.T) {
	cost := headroom.Expect(4).Cost()
	last := cost
	for age := time.Duration(0); age <= reservationLife; age += time.Second {
		now := reserved(cost, age, 4, 0)
		if !now.Fits(last) {
			t.Fatalf("the reservation grows at %v: %v after %v", age, now, last)
		}
		last = now
	}
	if last != (headroom.Egress{}) {
		t.Errorf("the reservation never ends: %v", last)
	}
	if whole := reserved(cost, reservationLife/2, 4, 0); whole != cost {
		t.Errorf("half-way %v of %v is reserved", whole, cost)
	}
	if half := reserved(cost, reservationLife*3/4, 4, 0); half != cost.Part(0.5) {
		t.Errorf("after three quarters %v of %v is reserved", half, cost)
	}
	if one := reserved(cost, 0, 4, 3); one != cost.Part(0.5) { // of twelve streams six flow
		t.Errorf("with three of four measured %v of %v is reserved", one, cost)
	}
	if none := reserved(cost, 0, 4, 7); none != (headroom.Egress{}) {
		t.Errorf("with everybody measured %v is reserved", none)
	}
}

// TestNobodyIsChargedTwice: people who came back quickly are measured before their reservation has ended.
func TestNobodyIsChargedTwice(t *testing.T) {
	cost, more := headroom.Egress{BitsPerSecond: 1000, PacketsPerSecond: 100}, headroom.Egress{BitsPerSecond: 1500, PacketsPerSecond: 150}
	for _, c := range []struct{ measured, reserved, want headroom.Egress }{
		{headroom.Egress{}, cost, cost},
		{cost.Part(0.8), cost, cost},
		{cost.Part(0.3), cost.Part(0.5), cost.Part(0.8)},
		{more, cost.Part(0.5), more},
	} {
		if got := charge(c.measured, c.reserved, cost); got != c.want {
			t.Errorf("measured %v, reserved %v: charged %v, want %v", c.measured, c.reserved, got, c.want)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	at := time.UnixMilli(1769000000000)
	m.observe(headroom.Egress{BitsPerSecond: 100, PacketsPerSecond: 10}, at)
	if got := m.observe(headroom.Egress{BitsPerSecond: 300, PacketsPerSecond: 20}, at.Add(100*time.Millisecond)); got != (headroom.Egress{}) {
		t.Errorf("a tenth of a second gives %v", got)
	}
	if got := m.observe(headroom.Egress{BitsPerSecond: 2100, PacketsPerSecond: 110}, at.Add(2*time.Second)); got != (headroom.Egress{BitsPerSecond: 1000, PacketsPerSecond: 50}) {
		t.Errorf("rate is %v", got)
	}
}

// Who came during a window is not measured by it, and a second look at one measures nobody.
func TestMeterCoversWhoWasThereAllTheWhile(t *testing.T) {
	var m meter
	at := time.UnixMilli(1769000000000)
	for i, look := range []struct {
		after           time.Duration
		bits            uint64
		people, covered int
		rate            uint64
	}{
		{0, 0, 0, 0, 0},
		{500 * time.Millisecond, 0, 4, 0, 0},
		{900 * time.Millisecond, 50, 4, 0, 0},
		{1000 * time.Millisecond, 100, 4, 0, 200},
		{1500 * time.Millisecond, 600, 3, 3, 1000},
		{1550 * time.Millisecond, 700, 5, 3, 1000},
	} {
		rate := m.observeOf(headroom.Egress{BitsPerSecond: look.bits}, look.people, at.Add(look.after)).BitsPerSecond
		if m.covered != look.covered || rate != look.rate {
			t.Errorf("look %d: %d bit/s of %d people, want %d of %d", i, rate, m.covered, look.rate, look.covered)
		}
	}
}

// A room is charged what it sends as soon as everybody in it is measured, and its signaling nodes are told.
func TestARoomIsChargedWhatItSends(t *testing.T) {
	s := newStage(t, "one")
	reserve := func(a *control.Attach) {
		a.ExpectedSize, a.ExpectedEgress = 2, control.EgressProto(headroom.Expect(2).Cost())
	}
	aliceStream, _ := s.attach("room", "alice", 1, reserve)
	if got := s.node.Load(); got.EgressBitsPerSecond < headroom.Expect(2).Cost().BitsPerSecond/2 {
		t.Errorf("a room that was opened is charged %d bit/s", got.EgressBitsPerSecond)
	}
	bobStream, _ := s.attach("room", "bob", 1)
	for tag, e := range map[byte]*attachStream{'a': aliceStream, 'b': bobStream} {
		c := newMediaClient(t, tag, true, 2)
		c.negotiate(e, nil)
		c.goSend()
	}
	told := bobStream.await("what the room sends", func(e *control.PeerEvent) bool { return e.GetEgress().GetBitsPerSecond() > 0 }).GetEgress()
	eventually(t, "a charge of what the room sends", func() bool {
		return s.node.Load().EgressBitsPerSecond <= 4*told.GetBitsPerSecond()
	})
	if _, attached := s.attach("room", "carol", 1); attached.GetEgress() == nil {
		t.Error("a newcomer's signaling node is not told what the room sends")
	}
}

// A room that reserves nothing is judged by its cost all the same.
func TestAnUnreservedRoomIsJudgedAndNotCharged(t *testing.T) {
	recorder, facts := testkit.Recorded(t)
	s := newStage(t, "one", func(c *Config) {
		c.CeilingBitsPerSecond, c.Events = 2*headroom.Expect(2).Cost().BitsPerSecond, recorder
	})
	s.attach("free", "mallory", 1, func(a *control.Attach) { a.ExpectedSize, a.Unreserved = 2, true })
	if got := s.node.Load(); got.EgressBitsPerSecond != 0 || got.Rooms != 1 {
		t.Errorf("it is charged: %+v", got)
	}
	s.attach("honest", "ada", 1, func(a *control.Attach) { a.ExpectedSize = 2 })
	eventually(t, "an event of the headroom, though nobody was refused", func() bool {
		return slices.ContainsFunc(facts(), func(e events.Event) bool {
			return e.Kind == events.LimitReached && e.About == limitHeadroom && e.Room == ""
		})
	})
	big := s.attachMessage(s.pin(s.epoch), "big", "mallory", 1)
	big.GetAttach().ExpectedSize, big.GetAttach().Unreserved = 30, true
	if got := s.refusal(big); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a room over the ceiling: %v", got)
	}
}

// Three hundred rooms, of which nobody said the size, are opened within twenty seconds on three nodes that carry twenty each. Their three people come
// within five seconds and send what people send. Whatever is measured half a second late: no node sends more than its
// ceiling for longer than a second.
func TestNoNodePassesASmallCeiling(t *testing.T) {
	const step, lag = 100 * time.Millisecond, 500 * time.Millisecond
	random := rand.New(rand.NewPCG(7, 11))
	type simulated struct {
		*room

		node    *Node
		arrives [3]time.Duration // since the room was opened
	}
	whole := headroom.Expect(3).Cost()
	var (
		nodes  []*Node
		rooms  []simulated
		begin  = time.Now()
		beyond = map[*Node]time.Duration{}
		asked  int
	)
	for i := range 3 {
		cfg := DefaultConfig()
		cfg.Node = ring.NodeID(fmt.Sprintf("n%d", i))
		cfg.CeilingBitsPerSecond, cfg.CeilingPacketsPerSecond = whole.Times(20).BitsPerSecond, whole.Times(20).PacketsPerSecond
		nodes = append(nodes, &Node{cfg: cfg, log: slog.New(slog.DiscardHandler), rooms: map[ring.RoomID]*room{}, stones: newTombstones()})
	}
	// sends is what a room sends when so much time has passed since it was opened.
	sends := func(s simulated, age time.Duration) (sent headroom.Egress, people int) {
		for _, at := range s.arrives {
			if age >= at {
				people++
			}
		}
		if people > 1 {
			sent = headroom.Expect(people).Cost()
		}
		return sent, people
	}
	for tick := range 400 {
		now := begin.Add(time.Duration(tick) * step)
		if tick < 200 {
			for range 1 + tick%2 { // 300 in all
				n, id := nodes[random.IntN(3)], ring.RoomID(fmt.Sprintf("room-%d", asked))
				asked++
				a := attachment{pin: pin.Pin{Fence: pin.Fence{Epoch: uint64(tick + 1)}}, room: id, request: &control.Attach{ExpectedEgress: control.EgressProto((headroom.Room{}).Cost())}}
				if n.mayOpen(a, now) != nil {
					continue
				}
				s := simulated{room: &room{id: id, load: &roomLoad{opened: now, cost: a.cost(), people: a.people()}}, node: n}
				for i := range s.arrives {
					s.arrives[i] = time.Duration(random.Int64N(int64(5 * time.Second)))
				}
				n.rooms[id], rooms = s.room, append(rooms, s)
			}
		}
		actual := map[*Node]headroom.Egress{}
		for _, s := range rooms {
			sent, _ := sends(s, now.Sub(s.load.opened))
			actual[s.node] = actual[s.node].Plus(sent)
			s.load.measured, s.load.connectedThroughout = sends(s, now.Sub(s.load.opened)-lag)
		}
		for _, n := range nodes {
			beyond[n] += step
			if actual[n].Fits(whole.Times(20)) {
				beyond[n] = 0
			}
			if beyond[n] > time.Second {
				t.Fatalf("%s sends %v for more than a second, with a ceiling of %v", n.cfg.Node, actual[n], whole.Times(20))
			}
		}
	}
	if opened := len(rooms); opened < 45 {
		t.Errorf("%d rooms were opened where 60 fit", opened)
	}
}

// A room in which people are is judged by the lowest layers of all rooms, another by what all send.
func TestARunningRoomIsTakenForItsLowestLayers(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.CeilingBitsPerSecond = headroom.Expect(10).Cost().BitsPerSecond })
	s.attach("first", "ada", 1, func(a *control.Attach) { a.ExpectedSize = 8 })
	begins := s.attachMessage(s.pin(s.epoch), "begins", "bob", 1)
	begins.GetAttach().ExpectedSize = 8
	if got := s.refusal(begins); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a room that begins: %v", got)
	}
	running := func(people uint32) func(*control.Attach) {
		return func(a *control.Attach) {
			a.ExpectedSize, a.ExpectedFloor = people, control.EgressProto(headroom.Expect(int(people)).Floor())
		}
	}
	s.attach("runs", "carol", 1, running(8))
	if got := s.node.Load(); got.Floor.BitsPerSecond != 2*headroom.Expect(8).Floor().BitsPerSecond {
		t.Errorf("two rooms of eight: %+v", got)
	}
	huge := s.attachMessage(s.pin(s.epoch), "huge", "dan", 1)
	running(40)(huge.GetAttach())
	if got := s.refusal(huge); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a room of which not even the lowest layers fit: %v", got)
	}
}

// A running room that would take its node above the ceiling begins with its lowest layers, before its first packet. What fits begins
// whole.
func TestARoomThatIsTooMuchBeginsWithItsLowestLayers(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.CeilingBitsPerSecond = headroom.Expect(10).Cost().BitsPerSecond })
	running := func(part float64) func(*control.Attach) {
		return func(a *control.Attach) {
			a.ExpectedSize, a.ExpectedEgress = 2, control.EgressProto(s.node.ceiling().Part(part))
			a.ExpectedFloor = control.EgressProto(headroom.Expect(2).Floor())
		}
	}
	opened := func(id string) *room {
		s.node.mu.Lock()
		defer s.node.mu.Unlock()
		return s.node.rooms[ring.RoomID(id)]
	}
	for _, id := range []string{"a", "b", "c"} {
		s.attach(id, "ada", 1, running(0.3))
		if got := opened(id).media.Level(); got != forward.AllLevels {
			t.Errorf("room %s of 0.3 of the ceiling: level %d", id, got)
		}
	}
	next := func(edit func(*control.Attach)) forward.Level {
		request := &control.Attach{ExpectedSize: 9}
		edit(request)
		at := opened("a").load.opened // reservations are whole then
		s.node.mu.Lock()
		defer s.node.mu.Unlock()
		level, _ := s.node.newcomer(attachment{request: request}, at)
		return level
	}
	for part, want := range map[float64]forward.Level{0.05: forward.AllLevels, 0.1: forward.LowestLevels} {
		if got := next(running(part)); got != want {
			t.Errorf("0.9 of the ceiling, and a room of %v: level %d, want %d", part, got, want)
		}
	}
	if got := next(func(*control.Attach) {}); got != forward.AllLevels {
		t.Errorf("a room that begins: level %d", got)
	}
	s.attach("large", "ada", 1, running(1))
	if got := opened("large").media.Level(); got != forward.LowestLevels {
		t.Errorf("a room of all of the ceiling: level %d", got)
	}
}

// A new room that this node could not carry whole is charged as half of the node, if another node can take some of its people.
func TestALargeNewRoomIsHalfANodeAtFirst(t *testing.T) {
	var known atomic.Pointer[[]spread.Candidate] // the node reads them, too
	known.Store(&[]spread.Candidate{})
	s := newStage(t, "one", func(c *Config) { c.Candidates = func(ring.RoomID) []spread.Candidate { return *known.Load() } })
	whole := headroom.Expect(1000).Cost()
	room := attachment{request: &control.Attach{ExpectedSize: 1000}}
	ran := attachment{request: &control.Attach{ExpectedSize: 1000, ExpectedFloor: control.EgressProto(headroom.Expect(1000).Floor())}}
	other := spread.Candidate{Node: "other", Able: true}
	self, old, draining := spread.Candidate{Node: s.node.cfg.Node, Able: true}, spread.Candidate{Node: "other"}, other
	draining.Draining = true
	for name, c := range map[string]struct {
		candidates []spread.Candidate
		of         attachment
		halved     bool
	}{
		"another one can":         {[]spread.Candidate{self, other}, room, true},
		"nobody can":              {[]spread.Candidate{self, old, draining}, room, false},
		"its people come at once": {[]spread.Candidate{self, other}, ran, false},
	} {
		known.Store(&c.candidates)
		if got := s.node.first(c.of); (got != whole) != c.halved || c.halved && got.Share(s.node.ceiling()) > 0.501 {
			t.Errorf("%s: %v of %v", name, got, whole)
		}
	}
}
