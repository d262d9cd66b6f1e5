// Package spread is how the owner of a room decides on which media nodes the room's people are. It is a pure state machine on the caller's
// clock: it knows no network, no gossip, no store and no peer, and the same calls give the same answers. Begin with Spread.
//
// It promises:
//   - A newcomer has a place as long as the room and one of its nodes have one. If one has, it waits for a new branch for at most AppointWait.
//   - No node gets more people than Limits.PeersPerNode, no room more than Limits.PeersPerRoom, and no room more branches than MostBranches.
//   - A load that swings by less than a quarter of what a node takes, as from 0.55 to 0.70 of its ceiling, neither appoints nor gathers.
//   - A room that is small beside the other rooms of its node stays on one node.
//
// Rules that a reader may miss, and why they are as they are:
//   - A room that is not spread gets a branch for its load only if it is over half of its node's load. Otherwise the other rooms fill the
//     node, and moving those is relief's.
//   - A newcomer who sends is placed as everybody else. On a branch its layers cross one link more, which is little, and the owner must stay
//     cool enough for its links.
//   - A candidate needs headroom for 50 more people, but for no more than a quarter of its ceiling: a small node never holds 50.
//   - People who are needed again while a branch is being gathered stay there: that is cheaper than another branch.
//   - A branch that was appointed by hand stays until it is gathered by hand or its node drains.
package spread

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Every is the interval at which the caller calls Tick.
	Every = 500 * time.Millisecond
	// AppointWait is how long a newcomer waits for the answer of a new branch.
	AppointWait = 100 * time.Millisecond
	// MostBranches bounds the branches of a room.
	MostBranches = 16
)

// These are shares of a node's ceiling. A swing from gatherTo to takeTo changes nothing.
const (
	// Newcomers and moved people fill a node up to takeTo.
	takeTo = 0.70
	// A node above hot for hotFor is relieved down to cool. hot is below the level at which pictures suffer.
	hot, cool = 0.85, 0.65
	// A room that takes less of its node is relief's.
	largeRoom = 0.5
	// After a gathering the other members are below gatherTo.
	gatherTo = 0.55
	// A candidate has headroom for roomFor people below candidateTo.
	candidateTo   = 0.60
	roomFor       = 50
	mostRoomFor   = 0.25
	linksAtMost   = 0.25
	gatherPeople  = gatherTo / takeTo // of Limits.PeersPerNode
	defaultPeople = 10                // headroom expects a full page from so many
)

const (
	hotFor = 3 * time.Second
	// A link takes about as much of the owner as linkWorth people.
	linkWorth = 10
	// Moved people have two connections for some seconds. Those who leave a draining or gathered branch are more, since it is cool.
	hotMoves, gatherMoves = 8, 64
	// A load report includes somebody who came countsFor ago.
	countsFor = 2 * time.Second
	// Somebody who was sent to a node and does not come is forgotten.
	comesWithin, movesWithin = 5 * time.Second, 10 * time.Second
	// A candidate that failed is not asked again for failedFor.
	failedFor     = time.Minute
	answersWithin = 5 * time.Second
	searchLasts   = time.Second

	gatherAfter, mostGatherAfter = 2 * time.Minute, 30 * time.Minute
	gatherAge                    = 5 * time.Minute
	gatherEvery                  = 30 * time.Second
	gatherLasts                  = time.Minute
	regretWithin                 = 10 * time.Minute
	emptyFor                     = 30 * time.Second
	closesWithin                 = 5 * time.Second
)

// Limits bound the people of a node and of a room.
type Limits struct{ PeersPerNode, PeersPerRoom int }

// Room is what the owner sees at one moment.
type Room struct {
	// Members are the nodes that carry people of the room: the owner first, then its branches in a fixed order.
	Members []Member
	// Candidates returns other nodes in the order in which they are to be asked. It is called only if a branch is needed; nil: there are none.
	Candidates func() []Candidate
	// Person is what the room costs for each person on average; zero until it is measured.
	Person headroom.Egress
}

// Member is a node that carries people of the room.
type Member struct {
	Node ring.NodeID
	Boot pin.BootID
	// People are those who are attached here. Silent of them send nothing, and so can be moved at little cost.
	People, Silent int
	// Load is what the node sends, with all its rooms. A load that includes reservations counts newcomers twice, for some seconds.
	Load, Ceiling headroom.Egress
	// Room is this room's part of Load, and Links the part of it that goes to other nodes.
	Room, Links headroom.Egress
	// Limited says that the node holds pictures back.
	Limited bool
	// Up says that the link is up. The owner's is not looked at.
	Up       bool
	Draining bool
}

// Candidate is a node that may become a branch.
type Candidate struct {
	Node    ring.NodeID
	Boot    pin.BootID
	Control string
	// Able says that the node knows how to be a branch.
	Able, Draining, Suspect bool
	Load, Ceiling           headroom.Egress
}

// Decision is where a newcomer goes: to the node To; or nowhere, because the room is Full; or the caller asks again after Wait, or as soon as
// an appointment is answered. Appoint may be set beside To and Wait, and is to be carried out.
type Decision struct {
	To      ring.NodeID
	Wait    time.Duration
	Full    bool
	Appoint *Appoint
	Why     string
}

// Order is what the owner is to do: Appoint, Gather, Move or Close.
type Order interface{ change() Change }

// Appoint makes the candidate a branch. The caller reports a failure with Failed; a success shows in Room.Members.
type Appoint struct {
	Candidate Candidate
	Why       string
}

// Gather says that a branch is about to be given up. Moves and a Close follow.
type Gather struct {
	Node ring.NodeID
	Why  string
}

// Move moves so many people of one member to another, those who send nothing first. If Silent is set, it moves only those.
type Move struct {
	From, To ring.NodeID
	People   int
	Silent   bool
	Why      string
}

// Close ends a branch that has no people.
type Close struct {
	Node ring.NodeID
	Why  string
}

// Change is one entry of the history.
type Change struct {
	At time.Time
	// What is appoint, gather, move, close, failed, lost or kept.
	What string
	Node ring.NodeID
	// To and People are those of a move.
	To     ring.NodeID
	People int
	Why    string
}

func (o Appoint) change() Change { return Change{What: "appoint", Node: o.Candidate.Node, Why: o.Why} }
func (o Gather) change() Change  { return Change{What: "gather", Node: o.Node, Why: o.Why} }
func (o Close) change() Change   { return Change{What: "close", Node: o.Node, Why: o.Why} }
func (o Move) change() Change {
	return Change{What: "move", Node: o.From, To: o.To, People: o.People, Why: o.Why}
}

const historyLength = 16

// Spread remembers what was decided for one room. It is not safe for concurrent use.
type Spread struct {
	limits  Limits
	members map[ring.NodeID]*member
	placed  []placement
	failed  map[ring.NodeID]failure
	// pending is the appointment that is not answered yet; its Why is empty if there is none.
	pending  pending
	searched time.Time // when newcomers began to wait for a branch

	gathered  time.Time // when the last branch was gathered for lack of people
	regretted bool      // a branch was needed again soon after
	wait      time.Duration
	changes   []Change
}

// member is what Spread remembers of a node that carries people.
type member struct {
	boot  pin.BootID
	owner bool
	since time.Time
	// why is empty for the owner and for branches that another owner appointed.
	why  string
	hand bool
	// people is the number at the last call.
	people   int
	welcomed bool // the link's worth was moved

	hotSince, emptySince, spareSince time.Time
	relieving                        bool

	gathering string // the reason, while people leave
	began     time.Time
	final     bool // by hand or because of a drain
	closed    time.Time
}

// placement is of people who were sent to a node.
type placement struct {
	from, to ring.NodeID // from is empty for newcomers
	people   int
	// came counts those who have arrived. at is the time of the decision, or of the last arrival once all have.
	came int
	at   time.Time
}

func (p placement) coming() int { return p.people - p.came }

// failure is that of one process: a node that was started again is as good as any.
type failure struct {
	boot  pin.BootID
	until time.Time
	why   string
}

type pending struct {
	Appoint
	at   time.Time
	hand bool
}

// New returns the Spread of a room that has no branch, or whose branches another owner appointed.
func New(limits Limits) *Spread {
	return &Spread{limits: limits, members: map[ring.NodeID]*member{}, failed: map[ring.NodeID]failure{}, wait: gatherAfter}
}

// Changes returns the last changes, the oldest first.
func (s *Spread) Changes() []Change { return slices.Clone(s.changes) }

// Failed tells that an appointment failed or that a branch was lost. The node is passed over for a minute, or until it is started again.
func (s *Spread) Failed(now time.Time, node ring.NodeID, boot pin.BootID, why string) {
	if s.pending.Candidate.Node == node {
		s.pending = pending{}
	}
	s.failed[node] = failure{boot, now.Add(failedFor), why}
	s.note(now, Change{What: "failed", Node: node, Why: why})
}

func (s *Spread) note(now time.Time, c Change) {
	c.At = now
	// The moves of one cause are one change.
	if last := len(s.changes) - 1; last >= 0 && c.What == "move" {
		if l := s.changes[last]; l.What == c.What && l.Node == c.Node && l.To == c.To && l.Why == c.Why {
			c.People += l.People
			s.changes = s.changes[:last]
		}
	}
	s.changes = append(s.changes, c)
	s.changes = s.changes[max(len(s.changes)-historyLength, 0):]
}

// Newcomer decides where somebody goes who is about to attach, and is not among Member.People yet. canRedirect says that the newcomer and its
// signaling node understand that a room has several nodes.
func (s *Spread) Newcomer(now time.Time, room Room, canRedirect bool) Decision {
	s.observe(now, room)
	owner := room.Members[0]
	people := 0
	for _, m := range room.Members {
		people += m.People
	}
	for _, p := range s.placed {
		if p.from == "" {
			people += p.coming()
		}
	}
	switch best, fill, ok := s.lowest(room, s.takes); {
	case people >= s.limits.PeersPerRoom:
		return Decision{Full: true, Why: fmt.Sprintf("the room has %d people, the most that a room may have", people)}
	case !canRedirect && s.free(owner) <= 0:
		return Decision{Full: true, Why: fmt.Sprintf("the owner has %d people, the most that a node may have, and this client cannot go to another", owner.People)}
	case !canRedirect:
		return s.place(now, owner.Node)
	case ok && fill < takeTo:
		return s.place(now, best.Node)
	}
	if kept := s.keep(now, room); kept != "" {
		return s.place(now, kept)
	}
	var appointed *Appoint
	if why := s.needsBranch(room); why != "" {
		appointed = s.appoint(now, room, why)
	}
	if appointed != nil {
		s.note(now, appointed.change())
	}
	if wait := s.searched.Add(AppointWait).Sub(now); s.pending.Why != "" && wait > 0 {
		return Decision{Wait: wait, Appoint: appointed, Why: "waits for " + string(s.pending.Candidate.Node)}
	}
	best, _, ok := s.lowest(room, s.takes)
	if !ok {
		best, _, ok = s.lowest(room, func(m Member) bool {
			return s.free(m) > 0 && s.members[m.Node].closed.IsZero() && (m.Up || m.Node == owner.Node)
		})
	}
	switch {
	case !ok && s.pending.Why != "":
		return Decision{Wait: AppointWait, Appoint: appointed, Why: "waits for " + string(s.pending.Candidate.Node) + ", because nobody else may have more people"}
	case !ok:
		return Decision{Full: true, Why: "all nodes of the room have the most people that a node may have, and no other is to be had"}
	}
	d := s.place(now, best.Node)
	d.Appoint = appointed
	return d
}

func (s *Spread) place(now time.Time, node ring.NodeID) Decision {
	s.placed = append(s.placed, placement{to: node, people: 1, at: now})
	return Decision{To: node}
}

// needsBranch returns why a room whose members take no newcomers needs a branch. It is empty if the room does not.
func (s *Spread) needsBranch(room Room) string {
	owner := room.Members[0]
	switch {
	case len(room.Members) > 1:
		return fmt.Sprintf("no node of the room is below %.0f %% of its ceiling and takes people", 100*takeTo)
	case s.free(owner) <= 0:
		return fmt.Sprintf("the owner has %d people, the most that a node may have", owner.People)
	case owner.Draining || !overHalf(owner):
		return ""
	default:
		return fmt.Sprintf("the owner is at %.0f %% of its ceiling", 100*s.fill(room, owner))
	}
}

func overHalf(m Member) bool {
	return known(m.Ceiling) && m.Room.Share(m.Ceiling) > m.Load.Share(m.Ceiling)/2
}

func known(ceiling headroom.Egress) bool {
	return ceiling.BitsPerSecond > 0 && ceiling.PacketsPerSecond > 0
}

// lowest returns the member with the lowest fill of those that are right.
func (s *Spread) lowest(room Room, right func(Member) bool) (best Member, least float64, ok bool) {
	for _, m := range room.Members {
		if !right(m) {
			continue
		}
		if fill := s.fill(room, m); !ok || fill < least {
			best, least, ok = m, fill, true
		}
	}
	return best, least, ok
}

// takes reports whether people may be sent to a member, whatever its load.
func (s *Spread) takes(m Member) bool {
	st := s.members[m.Node]
	return (m.Up || st.owner) && !m.Draining && st.gathering == "" && st.closed.IsZero() && s.free(m) > 0
}

// free returns how many more people the member may have.
func (s *Spread) free(m Member) int {
	_, coming := s.moving(m.Node)
	return s.limits.PeersPerNode - m.People - coming
}

// moving returns how many people were told to leave a node and have not arrived elsewhere, and how many are on their way to it.
func (s *Spread) moving(node ring.NodeID) (leaving, coming int) {
	for _, p := range s.placed {
		if p.from == node {
			leaving += p.coming()
		}
		if p.to == node {
			coming += p.coming()
		}
	}
	return leaving, coming
}

// fill returns load/ceiling of a member, with the people who were sent there lately and without those who were sent away.
func (s *Spread) fill(room Room, m Member) float64 {
	if !known(m.Ceiling) {
		return 1
	}
	return max(m.Load.Share(m.Ceiling)+float64(s.uncounted(m.Node))*s.share(room, m), 0)
}

// uncounted returns the people whom the load does not include yet; it is below 0 if the load includes people who leave.
func (s *Spread) uncounted(node ring.NodeID) (people int) {
	for _, p := range s.placed {
		switch node {
		case p.to:
			people += p.people
		case p.from:
			people -= p.people
		}
	}
	return people
}

// share returns the part of a member's ceiling that a person takes.
func (s *Spread) share(room Room, m Member) float64 { return person(room).Share(m.Ceiling) }

func person(room Room) headroom.Egress {
	return cmp.Or(room.Person, headroom.Expect(defaultPeople).Cost().Part(1./defaultPeople))
}

// fits returns how many people a member takes up to a share of its ceiling.
func (s *Spread) fits(room Room, m Member, upTo float64) int {
	left := upTo - s.fill(room, m)
	if left <= 0 || !known(m.Ceiling) {
		return 0
	}
	return min(int(left/s.share(room, m)), s.free(m))
}

// appoint chooses a candidate for a new branch; nil if there is none or an appointment is under way. The caller notes the change.
func (s *Spread) appoint(now time.Time, room Room, why string) *Appoint {
	owner := room.Members[0]
	if s.pending.Why != "" || len(room.Members)-1 >= MostBranches || owner.Draining {
		return nil
	}
	// Another link is expected to take as much as each of the others does.
	branches := float64(len(room.Members) - 1)
	if branches > 0 && known(owner.Ceiling) && owner.Links.Share(owner.Ceiling)*(branches+1)/branches > linksAtMost {
		return nil
	}
	if room.Candidates == nil {
		return nil
	}
	for _, c := range room.Candidates() {
		if s.unfit(room, c) == "" {
			return s.begin(now, c, why, false)
		}
	}
	return nil
}

func (s *Spread) begin(now time.Time, c Candidate, why string, hand bool) *Appoint {
	order := Appoint{Candidate: c, Why: why}
	s.pending = pending{order, now, hand}
	if now.Sub(s.searched) > searchLasts {
		s.searched = now
	}
	return &order
}

// unfit returns why a candidate cannot be appointed; empty if it can.
func (s *Spread) unfit(room Room, c Candidate) string {
	if bad := s.barred(room, c); bad != "" {
		return bad
	}
	need := min(person(room).Times(roomFor).Share(c.Ceiling), mostRoomFor)
	if fill := c.Load.Share(c.Ceiling); fill+need >= candidateTo {
		return fmt.Sprintf("it is at %.0f %% of its ceiling, and at most %.0f %% leaves room for a branch", 100*fill, 100*(candidateTo-need))
	}
	return ""
}

func (s *Spread) barred(room Room, c Candidate) string {
	switch f, bad := s.failed[c.Node]; {
	case slices.ContainsFunc(room.Members, func(m Member) bool { return m.Node == c.Node }):
		return "it carries people of the room already"
	case !c.Able:
		return "its version cannot be a branch"
	case c.Draining:
		return "it is draining"
	case c.Suspect:
		return "it may be dead"
	case bad && f.boot == c.Boot:
		return "it failed less than a minute ago: " + f.why
	case !known(c.Ceiling):
		return "its ceiling is not known"
	default:
		return ""
	}
}
