package spread

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// part is a share of a ceiling of 1000 Mbit/s.
func part(share float64) headroom.Egress { return ceiling().Part(share) }

func ceiling() headroom.Egress {
	return headroom.Egress{BitsPerSecond: 1_000_000_000, PacketsPerSecond: 100_000}
}

// on is a member all of whose load is the room's. A person takes 0.01 of a node.
func on(node string, fill float64) Member {
	people := int(100*fill + 0.5)
	return Member{
		Node: ring.NodeID(node), Boot: pin.BootID(node), People: people, Silent: people, Load: part(fill), Ceiling: ceiling(), Room: part(fill), Up: true,
	}
}

func candidate(node string, fill float64) Candidate {
	return Candidate{Node: ring.NodeID(node), Boot: pin.BootID(node), Able: true, Load: part(fill), Ceiling: ceiling()}
}

func roomOf(members []Member, candidates ...Candidate) Room {
	return Room{Members: members, Person: part(0.01), Candidates: func() []Candidate { return candidates }}
}

func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// said is a decision or an order in short.
func said(o any) string {
	switch o := o.(type) {
	case Decision:
		text := string(o.To)
		switch {
		case o.Full:
			text = "full"
		case o.To == "":
			text = "wait " + o.Wait.String()
		}
		if o.Appoint != nil {
			text = said(*o.Appoint) + ", " + text
		}
		return text
	case Appoint:
		return "appoint " + string(o.Candidate.Node)
	case Move:
		return fmt.Sprintf("move %d %s>%s", o.People, o.From, o.To)
	case Gather:
		return "gather " + string(o.Node)
	case Close:
		return "close " + string(o.Node)
	case []Order:
		var all []string
		for _, each := range o {
			all = append(all, said(each))
		}
		return strings.Join(all, ", ")
	default:
		return fmt.Sprint(o)
	}
}

func TestWhereANewcomerGoes(t *testing.T) {
	small, slow, down, drains, unknown := on("a", 0.75), on("b", 0.3), on("b", 0.3), on("b", 0.3), on("b", 0.3)
	small.Room, down.Up, drains.Draining, unknown.Ceiling = part(0.3), false, true, headroom.Egress{}
	slow.Load = part(0.8)
	linked := on("a", 0.75)
	linked.Links = part(0.2)
	drained := on("a", 0.75)
	drained.Draining = true
	barred := candidate("c", 0)
	barred.Able = false
	leaves := candidate("d", 0)
	leaves.Draining = true
	perhaps := candidate("e", 0)
	perhaps.Suspect = true
	noCeiling := candidate("f", 0)
	noCeiling.Ceiling = headroom.Egress{}
	many := []Member{on("a", 0.75)}
	for i := range MostBranches {
		many = append(many, on(fmt.Sprint("b", i), 0.74))
	}
	for name, c := range map[string]struct {
		members    []Member
		candidates []Candidate
		limits     Limits
		stays      bool
		want       string
	}{
		"the owner":                  {[]Member{on("a", 0.5)}, []Candidate{candidate("c", 0)}, Limits{}, false, "a"},
		"the lowest fill":            {[]Member{on("a", 0.6), on("b", 0.5)}, nil, Limits{}, false, "b"},
		"the fill counts, no people": {[]Member{on("a", 0.6), slow}, nil, Limits{}, false, "a"},
		"cannot be redirected":       {[]Member{on("a", 0.9), on("b", 0.1)}, nil, Limits{}, true, "a"},
		"the link is down":           {[]Member{on("a", 0.6), down}, nil, Limits{}, false, "a"},
		"the branch drains":          {[]Member{on("a", 0.6), drains}, nil, Limits{}, false, "a"},
		"no load is known":           {[]Member{on("a", 0.6), unknown}, nil, Limits{}, false, "a"},
		"a branch is needed":         {[]Member{on("a", 0.7)}, []Candidate{candidate("c", 0.3)}, Limits{}, false, "appoint c, wait 100ms"},
		"a further one is needed": {
			[]Member{on("a", 0.7), on("b", 0.72)}, []Candidate{candidate("b", 0), candidate("c", 0)}, Limits{}, false, "appoint c, wait 100ms",
		},
		"the candidate is too full":     {[]Member{on("a", 0.7)}, []Candidate{candidate("c", 0.35), candidate("d", 0.34)}, Limits{}, false, "appoint d, wait 100ms"},
		"no candidate is right":         {[]Member{on("a", 0.7)}, []Candidate{barred, leaves, perhaps, noCeiling, candidate("a", 0)}, Limits{}, false, "a"},
		"nobody is there":               {[]Member{on("a", 0.9), on("b", 0.8)}, nil, Limits{}, false, "b"},
		"small beside others":           {[]Member{small}, []Candidate{candidate("c", 0)}, Limits{}, false, "a"},
		"the owner leaves":              {[]Member{drained}, []Candidate{candidate("c", 0)}, Limits{}, false, "a"},
		"too many branches":             {many, []Candidate{candidate("c", 0)}, Limits{}, false, "b0"},
		"links take a quarter":          {[]Member{linked, on("b", 0.72)}, []Candidate{candidate("c", 0)}, Limits{}, false, "b"},
		"most people of a node":         {[]Member{on("a", 0.4)}, []Candidate{candidate("c", 0)}, Limits{PeersPerNode: 40}, false, "appoint c, wait 100ms"},
		"most of all nodes":             {[]Member{on("a", 0.4), on("b", 0.41)}, nil, Limits{PeersPerNode: 40}, false, "full"},
		"most of the node, unmoved":     {[]Member{on("a", 0.4), on("b", 0.1)}, nil, Limits{PeersPerNode: 40}, true, "full"},
		"most people of a room":         {[]Member{on("a", 0.4), on("b", 0.1)}, nil, Limits{PeersPerRoom: 50}, false, "full"},
		"all drain, so it is the owner": {[]Member{drained, drains}, nil, Limits{}, false, "b"},
	} {
		limits := Limits{max(c.limits.PeersPerNode, 0), c.limits.PeersPerRoom}
		if limits.PeersPerNode == 0 {
			limits.PeersPerNode = 1000
		}
		if limits.PeersPerRoom == 0 {
			limits.PeersPerRoom = 5000
		}
		if got := said(New(limits).Newcomer(at(0), roomOf(c.members, c.candidates...), !c.stays)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Newcomers wait for a branch once, for 100 ms together. A candidate that refuses is passed over for a minute.
func TestTheWaitForABranch(t *testing.T) {
	s, room := New(standardLimits()), roomOf([]Member{on("a", 0.7)}, candidate("c", 0), candidate("d", 0))
	for _, c := range []struct {
		at   float64
		want string
	}{
		{0, "appoint c, wait 100ms"},
		{0.04, "wait 60ms"},
		{0.05, "c refused"},
		{0.05, "appoint d, wait 50ms"},
		{0.1, "a"},
		{0.2, "d refused"},
		{0.3, "a"},
		{59, "a"},
		{60.05, "appoint c, wait 100ms"},
		{65, "a"},
		{65.1, "appoint d, wait 100ms"},
	} {
		got := c.want
		if node, refused := strings.CutSuffix(c.want, " refused"); refused {
			s.Failed(at(c.at), ring.NodeID(node), pin.BootID(node), "no")
		} else {
			got = said(s.Newcomer(at(c.at), room, true))
		}
		if got != c.want {
			t.Fatalf("after %.2f s: %q, want %q; %+v", c.at, got, c.want, s.Changes())
		}
	}
}

// People who were just placed count for the load and for the limits, until they have come and the load includes them.
func TestPlacedPeopleCount(t *testing.T) {
	s := New(Limits{PeersPerNode: 100, PeersPerRoom: 190})
	members := []Member{on("a", 0.5), on("b", 0.5)}
	to := map[string]int{}
	for range 40 {
		to[said(s.Newcomer(at(0), roomOf(members), true))]++
	}
	if to["a"] != 20 || to["b"] != 20 {
		t.Errorf("40 people were placed: %v", to)
	}
	members[0].People += 20
	s.Tick(at(1), roomOf(members))
	for _, c := range []struct {
		after float64
		want  float64
	}{{1, 0.70}, {2.9, 0.70}, {3, 0.50}} {
		if got := s.Explain(at(c.after), roomOf(members))[0].Fill; got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("after %.1f s the fill is %.2f, want %.2f", c.after, got, c.want)
		}
	}
	members[0].People, members[1].People = 100, 70
	for range 20 {
		s.Newcomer(at(10), roomOf(members), true)
	}
	if got := said(s.Newcomer(at(10), roomOf(members), true)); got != "full" {
		t.Errorf("the person after the last is told %q", got)
	}
}

// play calls Tick twice a second and returns what was ordered, with the second of each.
func play(s *Spread, from, until float64, room Room) string {
	var all []string
	for second := from; second <= until; second += Every.Seconds() {
		for _, o := range s.Tick(at(second), room) {
			all = append(all, fmt.Sprintf("%g: %s", second, said(o)))
		}
	}
	return strings.Join(all, "; ")
}

func TestAHotMemberIsRelieved(t *testing.T) {
	limited, others, few := on("a", 0.6), on("a", 0.9), on("a", 0.9)
	limited.Limited, others.Room, few.Silent = true, part(0.44), 3
	for name, c := range map[string]struct {
		members    []Member
		candidates []Candidate
		until      float64
		want       string
	}{
		"not yet":               {[]Member{on("a", 0.9), on("b", 0.1)}, nil, 2.5, ""},
		"eight at a time":       {[]Member{on("a", 0.9), on("b", 0.1)}, nil, 5, "3: move 8 a>b"},
		"the coolest":           {[]Member{on("a", 0.9), on("b", 0.2), on("c", 0.1)}, nil, 5, "3: move 8 a>c"},
		"a branch":              {[]Member{on("a", 0.1), on("b", 0.9)}, nil, 5, "3: move 8 b>a"},
		"as many as fit":        {[]Member{on("a", 0.9), on("b", 0.666)}, nil, 5, "3: move 3 a>b"},
		"it holds pictures":     {[]Member{limited, on("b", 0.1)}, nil, 5, ""},
		"not too hot":           {[]Member{on("a", 0.84), on("b", 0.1)}, nil, 100, ""},
		"other rooms are":       {[]Member{others, on("b", 0.1)}, nil, 100, ""},
		"few send nothing":      {[]Member{few, on("b", 0.1)}, nil, 5, "3: move 3 a>b"},
		"alone":                 {[]Member{on("a", 0.9)}, []Candidate{candidate("c", 0.1)}, 5, "3: appoint c"},
		"nowhere":               {[]Member{on("a", 0.9), on("b", 0.7)}, []Candidate{candidate("c", 0.4)}, 100, ""},
		"another one is needed": {[]Member{on("a", 0.9), on("b", 0.7)}, []Candidate{candidate("c", 0)}, 5, "3: appoint c"},
	} {
		if got := play(New(standardLimits()), 0, c.until, roomOf(c.members, c.candidates...)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// A node below hot that holds pictures back is relieved, too, if it is above cool.
	limited = on("a", 0.8)
	limited.Limited = true
	if got := play(New(standardLimits()), 0, 5, roomOf([]Member{limited, on("b", 0.1)})); got != "3: move 8 a>b" {
		t.Errorf("holding pictures back: %q", got)
	}
}

// A new branch of a full owner is given a link's worth of people, and of a cool owner none.
func TestANewBranchIsWelcomed(t *testing.T) {
	for fill, want := range map[float64]string{0.72: "1: move 10 a>c", 0.6: ""} {
		s := New(Limits{PeersPerNode: 50, PeersPerRoom: 500})
		s.Newcomer(at(0), roomOf([]Member{on("a", fill)}, candidate("c", 0)), true)
		if got := play(s, 1, 1, roomOf([]Member{on("a", fill), on("c", 0)})); got != want {
			t.Errorf("at %.2f: %q, want %q", fill, got, want)
		}
	}
	s := New(standardLimits())
	if got := play(s, 1, 1, roomOf([]Member{on("a", 0.8), on("c", 0.01)})); got != "" {
		t.Errorf("the branch of a former owner: %q", got)
	}
}

func TestGathering(t *testing.T) {
	few := []Member{on("a", 0.3), on("b", 0.10), on("c", 0.05)}
	for name, c := range map[string]struct {
		members []Member
		until   float64
		want    string
	}{
		"fewest people first, after 5 min":   {few, 300.5, "300: gather c; 300.5: move 5 c>a"},
		"the others would be too full":       {[]Member{on("a", 0.5), on("b", 0.06)}, 3600, ""},
		"they just fit":                      {[]Member{on("a", 0.49), on("b", 0.05)}, 300, "300: gather b"},
		"an empty branch is closed at once":  {[]Member{on("a", 0.5), on("b", 0)}, 34, "30: close b"},
		"and again if it is not carried out": {[]Member{on("a", 0.5), on("b", 0)}, 36, "30: close b; 35: close b"},
	} {
		if got := play(New(standardLimits()), 0, c.until, roomOf(c.members)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Each half of the time is too hot.
	s := New(standardLimits())
	for minute := range 20 {
		fill := []float64{0.3, 0.54}[minute%2]
		if got := play(s, float64(60*minute), float64(60*minute)+59.5, roomOf([]Member{on("a", fill), on("b", 0.05)})); got != "" {
			t.Errorf("minute %d: %q", minute, got)
		}
	}
	// Nobody leaves: it is called off after a minute.
	s = New(standardLimits())
	play(s, 0, 400, roomOf([]Member{on("a", 0.2), on("b", 0.05)}))
	if got := s.Changes()[len(s.Changes())-1]; got.What != "kept" {
		t.Errorf("%+v", got)
	}
}

// A branch that is needed again soon after a gathering makes the next gathering wait longer, up to half an hour.
func TestRegretDoublesTheWait(t *testing.T) {
	s, now := New(standardLimits()), 0.0
	one, two := []Member{on("a", 0.2)}, []Member{on("a", 0.2), on("b", 0.05)}
	appoint := func() {
		s.Newcomer(at(now), roomOf([]Member{on("a", 0.75)}, candidate("b", 0)), true)
		s.Tick(at(now), roomOf(two))
	}
	appoint()
	var waits []float64
	for range 7 {
		began := now
		for !s.gathering() {
			now += Every.Seconds()
			s.Tick(at(now), roomOf(two))
		}
		waits = append(waits, now-began)
		now++
		s.Tick(at(now), roomOf(one))
		appoint()
	}
	if want := []float64{300, 300, 480, 960, 1800, 1800, 1800}; !slices.Equal(waits, want) {
		t.Errorf("the waits are %v, want %v", waits, want)
	}
	now += 3600
	s.Tick(at(now), roomOf(one))
	appoint()
	if s.wait != gatherAfter {
		t.Errorf("an hour later the wait is %s", s.wait)
	}
}

// Who is needed while a branch is gathered keeps it.
func TestACrowdKeepsABranch(t *testing.T) {
	s := New(standardLimits())
	play(s, 0, 300, roomOf([]Member{on("a", 0.2), on("b", 0.05)}))
	if got := said(s.Newcomer(at(301), roomOf([]Member{on("a", 0.72), on("b", 0.05)}, candidate("c", 0)), true)); got != "b" || s.gathering() {
		t.Errorf("%q, %+v", got, s.Changes())
	}
}

func TestADrainingBranch(t *testing.T) {
	drains := on("b", 0.6)
	drains.Draining = true
	for name, c := range map[string]struct {
		members    []Member
		candidates []Candidate
		want       string
	}{
		"64 at a time":              {[]Member{on("a", 0.05), drains}, nil, "0: gather b; 0.5: move 50 b>a; 0.5: move 10 b>a"},
		"the others get a new node": {[]Member{on("a", 0.7), drains}, []Candidate{candidate("c", 0)}, "0: gather b; 0.5: appoint c"},
		"the others must":           {[]Member{on("a", 0.7), drains}, nil, "0: gather b" + strings.Repeat("; 0.5: move 10 b>a", 6)},
	} {
		if got := play(New(standardLimits()), 0, 0.5, roomOf(c.members, c.candidates...)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestByHand(t *testing.T) {
	s, alone := New(standardLimits()), roomOf([]Member{on("a", 0.03)}, candidate("b", 0.55), candidate("c", 0))
	both := roomOf([]Member{on("a", 0.03), on("b", 0)}, candidate("b", 0.55), candidate("c", 0))
	for _, c := range []struct {
		room Room
		node ring.NodeID
		want string
	}{
		{alone, "z", "there is no media node z: `holdfast nodes` lists them"},
		{alone, "a", "node a carries people of the room already"},
		{roomOf([]Member{on("a", 0.03)}), "", "none of the 0 other media nodes can be a branch of the room: name one to learn why"},
		{both, "b", "node b cannot be a branch of the room: it carries people of the room already"},
	} {
		if _, err := s.SpreadByHand(at(0), c.room, c.node); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := s.GatherByHand(at(0), alone, ""); err == nil || err.Error() != "the room is on node a alone" {
		t.Error(err)
	}
	// A named node may be fuller than the rules want.
	if order, err := s.SpreadByHand(at(1), alone, "b"); err != nil || said(order) != "appoint b" {
		t.Fatal(order, err)
	}
	if _, err := s.SpreadByHand(at(1), alone, ""); err == nil {
		t.Error("two are appointed at once")
	}
	if got := play(s, 1.5, 3600, both); got != "1.5: move 3 a>b" {
		t.Errorf("%q, want that a link's worth moves and that the branch stays", got)
	}
	both.Members[1] = on("b", 0.03)
	if _, err := s.GatherByHand(at(3601), both, "a"); err == nil {
		t.Error("the owner is gathered")
	}
	orders, err := s.GatherByHand(at(3601), both, "")
	if err != nil || said(orders) != "gather b" {
		t.Fatal(orders, err)
	}
	if got := play(s, 3601.5, 3602, both); got != "3601.5: move 3 b>a" {
		t.Errorf("%q", got)
	}
	both.Members[0], both.Members[1] = on("a", 0.06), on("b", 0)
	if got := play(s, 3603, 3604, both); got != "3603: close b" {
		t.Errorf("%q", got)
	}
	if order, err := s.SpreadByHand(at(3605), alone, "b"); err == nil {
		t.Errorf("%v: it was gathered by hand a moment ago", order)
	}
	if order, err := s.SpreadByHand(at(3605), alone, ""); err != nil || said(order) != "appoint c" {
		t.Error(order, err)
	}
}

// A branch that is gone is one change, whether or not the owner says why.
func TestALostBranchIsOneChange(t *testing.T) {
	for _, why := range []string{"", "it died"} {
		s := New(standardLimits())
		s.Tick(at(0), roomOf([]Member{on("a", 0.2), on("b", 0.2)}))
		if why != "" {
			s.Failed(at(1), "b", pin.BootID("b"), why)
		}
		s.Tick(at(1), roomOf([]Member{on("a", 0.2)}))
		if got := s.Changes(); len(got) != 1 || got[0].Node != "b" || (got[0].What == "lost") != (why == "") {
			t.Errorf("%q: %+v", why, got)
		}
	}
}

// A failure is that of a process, so a node that was started again is asked at once.
func TestANodeThatWasStartedAgainMayCarryTheRoom(t *testing.T) {
	s, c := New(standardLimits()), candidate("c", 0)
	s.Failed(at(0), c.Node, c.Boot, "it died")
	room := roomOf([]Member{on("a", 0.2)}, c)
	if _, err := s.SpreadByHand(at(1), room, "c"); err == nil || !strings.Contains(err.Error(), "it died") {
		t.Errorf("the process that failed: %v", err)
	}
	room.Candidates()[0].Boot = "another"
	if order, err := s.SpreadByHand(at(1), room, "c"); err != nil || order.Candidate.Boot != "another" {
		t.Errorf("the next process: %+v, %v", order, err)
	}
}

func TestExplain(t *testing.T) {
	s := New(standardLimits())
	room := roomOf([]Member{on("a", 0.3), on("b", 0.10), on("c", 0.8)})
	play(s, 0, 10, room)
	states := s.Explain(at(10), room)
	if len(states) != 3 || states[0].Stays != "" ||
		!strings.HasPrefix(states[1].Stays, "is gathered in 4m50s if") || !strings.HasPrefix(states[2].Stays, "stays: its 80 people") {
		t.Errorf("%+v", states)
	}
	for range 100 {
		s.Failed(at(11), "z", pin.BootID("z"), "no")
	}
	if got := s.Changes(); len(got) != historyLength {
		t.Errorf("%d changes are kept", len(got))
	}
}

// Any joins, leaves, refusals, drains and deaths: everybody has a place or was told that it is full, and all bounds hold. The same calls
// give the same answers.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{rapid.IntRange(1, 300).Draw(t, "people a node"), rapid.IntRange(1, 900).Draw(t, "people a room")}
		w := newWorld(t, rapid.IntRange(1, 22).Draw(t, "nodes"), limits)
		w.moveLasts = time.Duration(rapid.IntRange(0, 80).Draw(t, "a move's tenths")) * step
		w.comesIn = time.Duration(rapid.IntRange(0, 20).Draw(t, "a join's tenths")) * step
		w.answers = time.Duration(rapid.IntRange(0, 9).Draw(t, "an answer's tenths")) * step
		if rapid.Bool().Draw(t, "costly") {
			w.person = w.person.Times(6)
		}
		twin := newWorld(t, len(w.nodes), limits)
		twin.moveLasts, twin.comesIn, twin.answers, twin.person = w.moveLasts, w.comesIn, w.answers, w.person
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			act := rapid.SampledFrom([]string{"come", "come", "stay", "leave", "refuse", "drain", "die", "others", "time"}).Draw(t, "act")
			node, n := rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node"), rapid.IntRange(0, 60).Draw(t, "number")
			for _, each := range []*world{w, twin} {
				each.act(act, node, n)
			}
		}
		for _, each := range []*world{w, twin} {
			each.passFor((MostBranches + 1) * time.Second)
			if len(each.waiting) > 0 {
				t.Fatalf("%d people wait", len(each.waiting))
			}
		}
		if !slices.Equal(w.s.Changes(), twin.s.Changes()) || w.people() != twin.people() {
			t.Fatalf("the same calls gave\n%+v\n%+v", w.s.Changes(), twin.s.Changes())
		}
	})
}

func (w *world) act(act string, node, n int) {
	member := slices.Contains(w.members, node)
	switch act {
	case "come":
		w.pass(n)
	case "stay":
		for range n % 5 {
			w.ask(w.now, false)
		}
	case "leave":
		w.leave(node, n)
	case "refuse":
		w.nodes[node].refuses = n%2 == 0
	case "drain":
		w.nodes[node].draining = n%2 == 0
	case "die":
		if w.nodes[node].dead = n%2 == 0; member && node != w.members[0] {
			w.leave(node, 1000)
			w.members = slices.DeleteFunc(w.members, func(m int) bool { return m == node })
			w.s.Failed(w.now, w.nodes[node].id, "boot-"+pin.BootID(w.nodes[node].id), "its link ended")
		}
		w.nodes[w.members[0]].dead = false
	case "others":
		w.nodes[node].others = w.ceiling.Part(float64(n) / 60)
	case "time":
		w.passFor(time.Duration(n*n) * step)
	}
}

// While a load swings by less than 0.15 of the nodes and people come and go, a branch that was gathered is not needed again, for hours.
func TestNoFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 12, standardLimits())
		for _, n := range w.nodes {
			n.others = w.ceiling.Part(float64(rapid.IntRange(0, 20).Draw(t, "others")) / 100)
		}
		people, swing := rapid.IntRange(20, 900).Draw(t, "people"), float64(rapid.IntRange(0, 14).Draw(t, "swing"))/100
		period := rapid.IntRange(20, 20_000).Draw(t, "period")
		for range people / 5 {
			w.pass(5)
		}
		// Some leave, so that something is to be gathered.
		for range people * rapid.IntRange(0, 60).Draw(t, "percent who leave") / 100 {
			if k := slices.MaxFunc(w.members, func(a, b int) int { return w.nodes[a].people - w.nodes[b].people }); w.nodes[k].people > 0 {
				w.leave(k, 1)
			}
		}
		churn, appointed := rapid.IntRange(1, 50).Draw(t, "churn"), 0
		lasts := 2 * time.Hour
		for i := range int(lasts / step) {
			if w.gathered == 0 {
				appointed = w.appointed
			}
			w.shift = 0
			if i%period > period/2 {
				w.shift = swing
			}
			if i%(10*churn) == 0 {
				if k := w.members[i/churn%len(w.members)]; w.nodes[k].people > 0 {
					w.leave(k, 1)
					w.pass(1)
					continue
				}
			}
			w.pass(0)
		}
		if w.appointed > appointed {
			t.Fatalf("%d people: %d branches were appointed after %d had been gathered, the highest fill was %.2f: %+v",
				people, w.appointed-appointed, w.gathered, w.highest, w.s.Changes())
		}
	})
}
