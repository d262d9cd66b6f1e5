package spread

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// observe compares the room with what is remembered of it.
func (s *Spread) observe(now time.Time, room Room) {
	here := map[ring.NodeID]bool{}
	for i, m := range room.Members {
		here[m.Node] = true
		st := s.members[m.Node]
		if st == nil || st.boot != m.Boot {
			// A branch that nobody here appointed is another owner's, and has its people already.
			st = &member{boot: m.Boot, since: now, people: m.People, welcomed: true}
			if s.pending.Why != "" && s.pending.Candidate.Node == m.Node {
				st = &member{boot: m.Boot, since: now}
			}
			s.members[m.Node] = st
		}
		st.owner = i == 0
		if m.Up && s.pending.Why != "" && s.pending.Candidate.Node == m.Node {
			st.why, st.hand, st.since = s.pending.Why, s.pending.hand, now
			s.appointed(now)
		}
		s.arrive(now, m.Node, m.People-st.people)
		st.people = m.People
	}
	s.forget(now, here)
}

// appointed notes the success of the pending appointment. A branch that is needed soon after one was gathered makes the next gathering wait
// twice as long.
func (s *Spread) appointed(now time.Time) {
	if !s.pending.hand {
		s.regret(now)
	}
	s.pending, s.searched = pending{}, time.Time{}
}

func (s *Spread) regret(now time.Time) {
	switch {
	case s.gathered.IsZero() || now.Sub(s.gathered) >= regretWithin:
		s.wait = gatherAfter
	case !s.regretted:
		s.wait, s.regretted = min(2*s.wait, mostGatherAfter), true
	}
}

// arrive takes more people of a node for those who were sent there first.
func (s *Spread) arrive(now time.Time, node ring.NodeID, more int) {
	for i := range s.placed {
		p := &s.placed[i]
		if came := min(more, p.coming()); p.to == node && came > 0 {
			p.came, p.at, more = p.came+came, now, more-came
		}
	}
}

// forget drops what no longer counts, and members that are not here any more.
func (s *Spread) forget(now time.Time, here map[ring.NodeID]bool) {
	s.placed = slices.DeleteFunc(s.placed, func(p placement) bool {
		lasts := countsFor
		switch {
		case p.coming() > 0 && p.from != "":
			lasts = movesWithin
		case p.coming() > 0:
			lasts = comesWithin
		}
		return now.Sub(p.at) >= lasts || !here[p.to] && p.coming() > 0
	})
	for _, node := range slices.Sorted(maps.Keys(s.members)) {
		if here[node] {
			continue
		}
		// A failure has been noted already.
		if st, failed := s.members[node], s.failed[node]; st.closed.IsZero() && !st.owner && failed.why == "" {
			s.note(now, Change{What: "lost", Node: node, Why: "its link ended"})
		}
		delete(s.members, node)
	}
	maps.DeleteFunc(s.failed, func(_ ring.NodeID, f failure) bool { return !now.Before(f.until) })
	if s.pending.Why != "" && now.Sub(s.pending.at) >= answersWithin {
		s.Failed(now, s.pending.Candidate.Node, s.pending.Candidate.Boot, "it did not answer")
	}
}

// Tick returns what is to be done now. The caller calls it every Every.
func (s *Spread) Tick(now time.Time, room Room) (orders []Order) {
	s.observe(now, room)
	if len(room.Members) == 1 && s.pending.Why == "" && !overHalf(room.Members[0]) {
		// Most rooms are small, and this is all that they cost.
		s.members[room.Members[0].Node].relieving = false
		s.members[room.Members[0].Node].hotSince = time.Time{}
		return nil
	}
	add := func(o Order) {
		s.note(now, o.change())
		orders = append(orders, o)
	}
	for _, m := range room.Members[1:] {
		switch st := s.members[m.Node]; {
		case m.Draining && m.Up && st.gathering == "":
			s.beginGathering(now, m, "its node drains", add)
			st.final = true
		case st.gathering != "":
			s.empty(now, room, m, add)
		case m.Up && !st.welcomed:
			s.welcome(now, room, m, add)
		}
		s.closeEmpty(now, m, add)
	}
	for _, m := range room.Members {
		s.relieve(now, room, m, add)
	}
	s.gather(now, room, add)
	return orders
}

// welcome moves a link's worth of the owner's people to a new branch.
func (s *Spread) welcome(now time.Time, room Room, m Member, add func(Order)) {
	st, owner := s.members[m.Node], room.Members[0]
	st.welcomed = true
	leaving, _ := s.moving(owner.Node)
	people := min(linkWorth, owner.Silent-leaving, s.free(m))
	if people > 0 && (st.hand || s.fill(room, owner) > cool) {
		s.move(now, Move{From: owner.Node, To: m.Node, People: people, Silent: true, Why: "the link to the new branch takes as much of the owner"}, add)
	}
}

func (s *Spread) move(now time.Time, m Move, add func(Order)) {
	s.placed = append(s.placed, placement{from: m.From, to: m.To, people: m.People, at: now})
	add(m)
}

// relieve moves people off a hot member, and orders a branch if no member is cool enough to take them.
func (s *Spread) relieve(now time.Time, room Room, m Member, add func(Order)) {
	st, fill := s.members[m.Node], s.fill(room, m)
	switch heated := m.Limited || fill > hot; {
	case st.relieving && fill > cool:
	case !heated || !overHalf(m) || m.Room.Share(m.Ceiling) <= largeRoom:
		st.hotSince, st.relieving = time.Time{}, false
		return
	case st.hotSince.IsZero():
		st.hotSince = now
		return
	case now.Sub(st.hotSince) < hotFor:
		return
	default:
		st.relieving = true
	}
	leaving, _ := s.moving(m.Node)
	people := min(hotMoves-leaving, m.Silent-leaving)
	if share := s.share(room, m); share > 0 {
		people = min(people, int((fill-cool)/share)+1)
	}
	if people <= 0 || st.gathering != "" {
		return
	}
	why := fmt.Sprintf("it was above %.0f %% of its ceiling for %s", 100*hot, hotFor)
	if m.Limited {
		why = fmt.Sprintf("it held pictures back for %s", hotFor)
	}
	others := func(o Member) bool { return o.Node != m.Node && s.takes(o) }
	if to, _, ok := s.lowest(room, others); ok {
		if fits := min(people, s.fits(room, to, takeTo)); fits > 0 {
			s.move(now, Move{From: m.Node, To: to.Node, People: fits, Silent: true, Why: why}, add)
			return
		}
	}
	if a := s.appoint(now, room, why); a != nil {
		add(*a)
	}
}

// closeEmpty ends a branch that has had no people for a while.
func (s *Spread) closeEmpty(now time.Time, m Member, add func(Order)) {
	st := s.members[m.Node]
	_, coming := s.moving(m.Node)
	switch {
	case m.People > 0 || coming > 0 || st.hand && st.gathering == "":
		st.emptySince, st.closed = time.Time{}, time.Time{}
		return
	case !st.closed.IsZero() && now.Sub(st.closed) < closesWithin:
		return
	case st.emptySince.IsZero():
		st.emptySince = now
	}
	why := fmt.Sprintf("it had nobody for %s", emptyFor)
	switch {
	case st.gathering != "":
		why = "its people have left: " + st.gathering
	case now.Sub(st.emptySince) < emptyFor:
		return
	}
	st.closed = now
	add(Close{Node: m.Node, Why: why})
}

// gather begins to give up a branch that the other members can do without, the one with the fewest people.
func (s *Spread) gather(now time.Time, room Room, add func(Order)) {
	best := -1
	for i, m := range room.Members[1:] {
		st := s.members[m.Node]
		switch spare := m.Up && s.spare(room, m); {
		case !spare || st.gathering != "" || st.hand || m.People == 0:
			st.spareSince = time.Time{}
			continue
		case st.spareSince.IsZero():
			st.spareSince = now
		}
		ready := now.Sub(st.spareSince) >= s.wait && now.Sub(st.since) >= gatherAge
		if ready && (best < 0 || m.People < room.Members[best].People) {
			best = i + 1
		}
	}
	if best < 0 || s.pending.Why != "" || s.gathering() || !s.gathered.IsZero() && now.Sub(s.gathered) < gatherEvery {
		return
	}
	s.gathered, s.regretted = now, false
	s.beginGathering(now, room.Members[best], fmt.Sprintf("without it the others stay below %.0f %% of their ceilings", 100*gatherTo), add)
}

// gathering reports whether a branch is being gathered for lack of people.
func (s *Spread) gathering() bool {
	for _, st := range s.members {
		if st.gathering != "" && !st.final {
			return true
		}
	}
	return false
}

// spare reports whether the other members can take all people of a branch and stay below gatherTo.
func (s *Spread) spare(room Room, branch Member) bool {
	left := branch.People
	most := int(float64(s.limits.PeersPerNode) * gatherPeople)
	for _, m := range room.Members {
		if m.Node != branch.Node && s.takes(m) {
			_, coming := s.moving(m.Node)
			left -= max(min(s.fits(room, m, gatherTo), most-m.People-coming), 0)
		}
	}
	return left <= 0
}

func (s *Spread) beginGathering(now time.Time, m Member, why string, add func(Order)) {
	st := s.members[m.Node]
	st.gathering, st.began = why, now
	add(Gather{Node: m.Node, Why: why})
}

// empty moves people off a branch that is given up.
func (s *Spread) empty(now time.Time, room Room, m Member, add func(Order)) {
	st := s.members[m.Node]
	if !st.final && now.Sub(st.began) >= gatherLasts && m.People > 0 {
		s.callOff(now, m.Node, fmt.Sprintf("its people did not leave within %s", gatherLasts))
		return
	}
	leaving, _ := s.moving(m.Node)
	for people := min(gatherMoves, m.People) - leaving; people > 0; {
		to, fits := s.roomiest(room, m)
		if fits == 0 && st.final && m.Draining {
			if a := s.appoint(now, room, "a branch drains, and the others are full"); a != nil {
				add(*a)
			}
			if s.pending.Why != "" {
				return
			}
		}
		if fits == 0 && st.final {
			fits = min(linkWorth, s.free(to))
		}
		if fits <= 0 || to.Node == "" {
			return
		}
		moved := min(people, fits)
		s.move(now, Move{From: m.Node, To: to.Node, People: moved, Why: st.gathering}, add)
		people -= moved
	}
}

// roomiest returns where people of a branch that is given up go, and how many fit there: the member with the most people that stays below
// gatherTo, because it is gathered last, or else the coolest member.
func (s *Spread) roomiest(room Room, branch Member) (to Member, fits int) {
	others := func(m Member) bool { return m.Node != branch.Node && s.takes(m) }
	hurried := s.members[branch.Node].final
	for _, m := range room.Members {
		fit := s.fits(room, m, gatherTo)
		if !hurried {
			// For some seconds after their arrival people are in the load and count beside it, too. Half at a time, and only after the
			// former ones have been counted, keeps newcomers from finding the member full because of that.
			fit = (fit + 1) / 2
		}
		settled := hurried || s.uncounted(m.Node) < linkWorth
		if others(m) && settled && fit > 0 && (fits == 0 || m.People > to.People) {
			to, fits = m, fit
		}
	}
	if fits > 0 || !hurried {
		return to, fits
	}
	to, _, ok := s.lowest(room, others)
	if !ok {
		return Member{}, 0
	}
	return to, s.fits(room, to, takeTo)
}

// keep calls a gathering off whose node is needed again, and returns the node.
func (s *Spread) keep(now time.Time, room Room) ring.NodeID {
	for _, m := range room.Members[1:] {
		if st := s.members[m.Node]; st.gathering != "" && !st.final && m.Up && !m.Draining && st.closed.IsZero() && s.free(m) > 0 {
			s.callOff(now, m.Node, "people came")
			s.regret(now)
			return m.Node
		}
	}
	return ""
}

func (s *Spread) callOff(now time.Time, node ring.NodeID, why string) {
	st := s.members[node]
	st.gathering, st.spareSince = "", time.Time{}
	s.note(now, Change{What: "kept", Node: node, Why: why})
}

// SpreadByHand appoints a branch at once: node, or the first candidate that fits if node is empty. The error is for the operator.
func (s *Spread) SpreadByHand(now time.Time, room Room, node ring.NodeID) (Appoint, error) {
	s.observe(now, room)
	var candidates []Candidate
	if room.Candidates != nil {
		candidates = room.Candidates()
	}
	switch {
	case s.pending.Why != "":
		return Appoint{}, fmt.Errorf("node %s is just becoming a branch of the room: try again in a moment", s.pending.Candidate.Node)
	case len(room.Members)-1 >= MostBranches:
		return Appoint{}, fmt.Errorf("the room has %d branches, the most that a room may have: gather one first", MostBranches)
	}
	for _, c := range candidates {
		bad := s.unfit(room, c)
		if c.Node == node {
			// An operator may load a node further than the rules do.
			bad = s.barred(room, c)
		}
		switch {
		case bad == "" && (node == "" || c.Node == node):
			order := s.begin(now, c, "by hand", true)
			s.note(now, order.change())
			return *order, nil
		case c.Node == node:
			return Appoint{}, fmt.Errorf("node %s cannot be a branch of the room: %s", node, bad)
		}
	}
	switch {
	case node == "":
		return Appoint{}, fmt.Errorf("none of the %d other media nodes can be a branch of the room: name one to learn why", len(candidates))
	case slices.ContainsFunc(room.Members, func(m Member) bool { return m.Node == node }):
		return Appoint{}, fmt.Errorf("node %s carries people of the room already", node)
	default:
		return Appoint{}, fmt.Errorf("there is no media node %s: `holdfast nodes` lists them", node)
	}
}

// GatherByHand begins to give up a branch: node, or all branches if node is empty. The error is for the operator.
func (s *Spread) GatherByHand(now time.Time, room Room, node ring.NodeID) (orders []Order, err error) {
	s.observe(now, room)
	for i, m := range room.Members {
		st := s.members[m.Node]
		switch {
		case node != "" && m.Node != node:
		case i == 0 && node != "":
			return nil, fmt.Errorf("node %s owns the room: to move the room use `holdfast move`", node)
		case i > 0:
			s.beginGathering(now, m, "by hand", func(o Order) {
				s.note(now, o.change())
				orders = append(orders, o)
			})
			st.final = true
			// Otherwise the next newcomer could bring it back.
			s.failed[m.Node] = failure{m.Boot, now.Add(failedFor), "it was gathered by hand"}
		}
	}
	switch {
	case len(orders) > 0:
		return orders, nil
	case node == "":
		return nil, fmt.Errorf("the room is on node %s alone", room.Members[0].Node)
	default:
		return nil, fmt.Errorf("node %s carries no people of the room", node)
	}
}

// State is a member as an operator is shown it.
type State struct {
	Node ring.NodeID
	Fill float64
	// Came says why a branch was appointed, Stays what would gather it.
	Came, Stays string
}

// Explain returns the members as Spread sees them.
func (s *Spread) Explain(now time.Time, room Room) (states []State) {
	s.observe(now, room)
	for i, m := range room.Members {
		st := s.members[m.Node]
		state := State{Node: m.Node, Fill: s.fill(room, m)}
		if i > 0 {
			state.Came, state.Stays = cmp.Or(st.why, "appointed by a former owner"), s.stays(now, room, m)
		}
		states = append(states, state)
	}
	return states
}

func (s *Spread) stays(now time.Time, room Room, m Member) string {
	st := s.members[m.Node]
	switch {
	case st.gathering != "":
		return "is being gathered: " + st.gathering
	case st.hand:
		return "stays until it is gathered by hand or its node drains"
	case m.People == 0:
		return fmt.Sprintf("is closed once it has had nobody for %s", emptyFor)
	case !s.spare(room, m):
		return fmt.Sprintf("stays: its %d people would take the others above %.0f %% of their ceilings or too near their most people", m.People, 100*gatherTo)
	default:
		since := now
		if !st.spareSince.IsZero() {
			since = st.spareSince
		}
		left := max(since.Add(s.wait).Sub(now), st.since.Add(gatherAge).Sub(now), 0)
		return fmt.Sprintf("is gathered in %s if the others can still take its %d people and stay below %.0f %% of their ceilings",
			left.Round(time.Second), m.People, 100*gatherTo)
	}
}
