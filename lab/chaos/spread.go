package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// leastSpread has people for three nodes.
	leastSpread = 16
	// spreadFrom people come before the room is spread, so that some of them are moved; the others come to all its nodes.
	spreadFrom = 8
	// spreadSpeakers send sound and pictures. Half of them come last, to branches.
	spreadSpeakers = 4
	spreadNodes    = 3
	// A branch answers within seconds.
	spreadLimit = 30 * time.Second
	// crossLooks is between two counts of what crosses the links.
	crossLooks = 2 * time.Second
)

// Spread is the room on several nodes, as it was before the fault.
type Spread struct {
	Room     string
	Owner    string
	Branches []string          // those with most people first
	At       map[string]string // the node of each client
	Speakers map[string]int    // by node
	Crossing []Crossing        // in the end
}

// Crossing is what passed over one direction of a link, and what the publishers behind that sent meanwhile.
type Crossing struct {
	From, To      string
	Crossed, Sent uint64 // packets
	People        int    // at To
	Layers, Most  int    // that crossed, and that the publishers have
}

func (s *Spread) is(room string) bool { return s != nil && s.Room == room }

func ofSpreadRooms() []scenario {
	const kill, freeze = syscall.SIGKILL, syscall.SIGSTOP
	smooth := Expect{Moves: true, Smooth: true}
	return []scenario{
		{
			name: BranchKill, sentence: "a media node that carries a part of the large room's people for another one is killed",
			expect: Expect{Moves: true}, once: true, spreads: true, acts: []act{{what: "killed", whom: branch, signal: kill}},
		},
		{
			name: OwnerKill, sentence: "the media node that holds the large room is killed, while others carry a part of its people",
			expect: Expect{Moves: true}, once: true, spreads: true, acts: []act{{what: "killed", whom: owner, signal: kill}},
		},
		{
			name: BranchDrain, sentence: "a media node that carries a part of the large room's people for another one drains",
			expect: smooth, once: true, spreads: true, strike: func(ctx context.Context, c *Chaos, w *World) (heal, error) {
				return c.drain(ctx, w, w.Spread.Branches[0])
			},
		},
		{
			name: OwnerDrain, sentence: "the media node that holds the large room drains, while others carry a part of its people",
			expect: smooth, once: true, spreads: true, strike: func(ctx context.Context, c *Chaos, w *World) (heal, error) {
				return c.drain(ctx, w, w.Spread.Owner)
			},
		},
		{
			name: BranchFreeze, sentence: "a media node that carries a part of the large room's people for another one is stopped with SIGSTOP until they have other places, and then wakes up",
			expect: Expect{Moves: true}, once: true, spreads: true, acts: []act{{what: "frozen", whom: branch, signal: freeze}},
		},
		{
			name: OwnerFreeze, sentence: "the media node that holds the large room is stopped with SIGSTOP until the room has moved, and then wakes up believing in it",
			expect: Expect{Moves: true}, once: true, spreads: true, acts: []act{{what: "frozen", whom: owner, signal: freeze}},
		},
		{
			name: LinkCut, sentence: "the link between the media node that holds the large room and one that carries a part of its people is cut, and everybody else reaches both, until those people have other places",
			expect: Expect{Links: true}, once: true, spreads: true, cut: true, acts: []act{{what: "cut off from the room's owner", whom: branch, fault: fromOwner(false)}},
		},
		{
			name: LinkLoss, sentence: "some packets between the media node that holds the large room and one that carries a part of its people are lost",
			expect: Expect{Stays: true}, once: true, spreads: true, hold: hurtFor, acts: []act{{what: "lossy towards the room's owner", whom: branch, fault: fromOwner(true)}},
		},
	}
}

// fromOwner hurts the way between a node and the owner of the large room.
func fromOwner(lossy bool) func(context.Context, *Chaos, *World, string) hosts.Fault {
	return func(_ context.Context, c *Chaos, w *World, _ string) hosts.Fault {
		f := hosts.Fault{From: []string{w.Spread.Owner}}
		if lossy {
			f.Percent = c.options.Percent
		}
		return f
	}
}

func branch(_ context.Context, _ *Chaos, w *World) []devcluster.Node {
	return []devcluster.Node{{Name: w.Spread.Branches[0], Role: devcluster.RoleSFU}}
}

func owner(_ context.Context, _ *Chaos, w *World) []devcluster.Node {
	return []devcluster.Node{{Name: w.Spread.Owner, Role: devcluster.RoleSFU}}
}

func (c *crowd) size(room string) int {
	if room == c.large {
		return c.chaos.options.Large
	}
	return c.chaos.options.Peers
}

// openSpread has some people come, spreads their room, and has the others come.
func (c *crowd) openSpread(ctx context.Context) error {
	people := c.chaos.options.Large
	for i := range people {
		if i == spreadFrom {
			if err := c.spreadLarge(ctx); err != nil {
				return err
			}
		}
		speaks := i < spreadSpeakers/2 || i >= people-spreadSpeakers/2
		p := &person{
			room: c.large, name: fmt.Sprintf("%s-person-%d", c.large, i+1), people: people, speakers: spreadSpeakers, listens: !speaks, camera: speaks,
		}
		if i < inRoom {
			p.messenger = c.exchange.enlist(p.name)
		}
		if err := c.add(p); err != nil { //nolint:contextcheck // as in crowd.open
			return err
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) { // join one by one
			return ctx.Err()
		}
	}
	return nil
}

// spreadLarge has the large room on as many nodes as it is to be.
func (c *crowd) spreadLarge(ctx context.Context) error {
	var refused error
	err := poll(ctx, spreadLimit, func() error {
		members := c.chaos.members(ctx, c.large)
		if up(members) >= spreadNodes {
			return nil
		}
		if up(members) == len(members) || len(members) == 0 { // else one is on its way
			refused = c.chaos.cluster.SpreadRoomAt(ctx, c.chaos.page, c.large)
		}
		return fmt.Errorf("%s is on %d nodes, not on %d", c.large, up(members), spreadNodes)
	})
	return errors.Join(err, refused)
}

func (c *Chaos) members(ctx context.Context, room string) []devcluster.AdminMember {
	rooms, _ := c.cluster.RoomsAt(ctx, c.page) // who does not answer is no member
	for _, r := range rooms {
		if r.Room == room {
			return r.Members
		}
	}
	return nil
}

func up(members []devcluster.AdminMember) int {
	count := 0
	for _, m := range members {
		if m.Link == nil || m.Link.Up {
			count++
		}
	}
	return count
}

// spreadRoom is nil if the large room is on one node.
func (c *crowd) spreadRoom(look Look) *Spread {
	for _, h := range look.holders(c.large) {
		if len(h.Members) < 2 {
			continue
		}
		s := &Spread{Room: h.Room, Owner: h.Node, At: make(map[string]string), Speakers: make(map[string]int)}
		nodes := make(map[string]string)
		people := make(map[string]int)
		for _, p := range h.Peers {
			nodes[p.Identity] = cmp.Or(p.Node, h.Node)
			people[nodes[p.Identity]]++
		}
		for _, m := range h.Members[1:] {
			s.Branches = append(s.Branches, m.Node)
		}
		slices.SortStableFunc(s.Branches, func(a, b string) int { return cmp.Compare(people[b], people[a]) })
		for _, p := range c.people {
			if p.room != h.Room {
				continue
			}
			s.At[p.short()] = nodes[p.name]
			if !p.listens {
				s.Speakers[nodes[p.name]]++
			}
		}
		return s
	}
	return nil
}

// account adds what the verdicts on a spread room need. Sound of people who were at the hurt node does not count.
func (c *crowd) account(w *World, p *person, client *Client) {
	totals := p.peer.Totals()
	client.KeyframesAsked, client.Others = totals.KeyframesAsked, totals.Others
	from := make(map[wire.PeerID]string)
	for _, other := range c.people {
		if at := w.Spread.At[other.short()]; other.room == p.room && other != p && !slices.Contains(w.struckSFU(), at) {
			from[other.peer.Totals().Peer] = at
		}
	}
	_, shown := p.peer.Shown()
	now := time.Now()
	for id, stream := range shown {
		at, unhurt := from[id.Peer]
		if !unhurt || id.Source != wire.SourceMicrophone {
			continue
		}
		gap := stream.GapUntil(now)
		client.LongestGap = max(client.LongestGap, gap)
		if at == w.Spread.At[client.Name] {
			client.LocalGap = max(client.LocalGap, gap)
		}
	}
}

// crossing counts for a moment what crosses the links of the room as it is now.
func (c *crowd) crossing(ctx context.Context, s *Spread) []Crossing {
	type count struct {
		members []devcluster.AdminMember
		sent    map[string]uint64 // by node
		voices  map[string]int
	}
	look := func() count {
		n := count{sent: make(map[string]uint64), voices: make(map[string]int)}
		n.members = c.chaos.members(ctx, s.Room)
		for _, p := range c.people {
			if p.room == s.Room && !p.listens {
				t := p.peer.Totals()
				n.sent[string(t.Node)] += t.Sent.Packets
				n.voices[string(t.Node)]++
			}
		}
		return n
	}
	before := look()
	backoff.Sleep(ctx, crossLooks)
	after := look()
	var all []Crossing
	for i, m := range after.members {
		if m.Link == nil || i >= len(before.members) || before.members[i].Node != m.Node {
			continue
		}
		then, owner := before.members[i].Link, after.members[0].Node
		to, back := Crossing{From: owner, To: m.Node}, Crossing{From: m.Node, To: owner}
		to.Crossed, back.Crossed = m.Link.Sent.Packets-then.Sent.Packets, m.Link.Received.Packets-then.Received.Packets
		to.People, back.People = int(m.People), int(after.members[0].People)
		to.Layers, back.Layers = int(m.Link.Sent.Layers), int(m.Link.Received.Layers)
		for node := range after.sent {
			one := &to
			if node == m.Node {
				one = &back
			}
			one.Sent += after.sent[node] - before.sent[node]
			one.Most += layersOfSpeaker * after.voices[node]
		}
		all = append(all, to, back)
	}
	return all
}

// layersOfSpeaker are a microphone and a sparse camera.
const layersOfSpeaker = 2

func (w *World) spreadNote() string {
	s := w.Spread
	people := make(map[string]int)
	longest, local, asked, victims := time.Duration(0), time.Duration(0), 0, 0
	for _, client := range w.Clients {
		if !s.is(client.Room) {
			continue
		}
		people[s.At[client.Name]]++
		asked = max(asked, client.KeyframesAsked)
		if w.struckClient(client) {
			victims++
			continue
		}
		longest, local = max(longest, client.LongestGap), max(local, client.LocalGap)
	}
	places := []string{fmt.Sprintf("the large room: owner %s with %d people (%d speak)", s.Owner, people[s.Owner], s.Speakers[s.Owner])}
	for _, b := range s.Branches {
		places = append(places, fmt.Sprintf("%s with %d (%d)", b, people[b], s.Speakers[b]))
	}
	return fmt.Sprintf("%s; %d were at the hurt node, the others missed sound of each other for %d ms at most, at one node for %d ms; a layer was asked for %d keyframes in a second at most",
		strings.Join(places, ", "), victims, longest.Milliseconds(), local.Milliseconds(), asked)
}
