package sfu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

const (
	// A node forwards to so many people of a room at most: see docs/LIMITS.md.
	peersPerNode = 1000
	// A room of fewer people, on one node, is not looked at between its joins.
	lookedAtFrom = 20
	// What a room costs for each person is measured once there are so many.
	measuredFrom = 3
)

// errAppointing: a newcomer waits for a node that is about to become a branch.
var errAppointing = errors.New("the room's next branch has not answered yet")

// spreading decides at the owner of a room on which nodes its people are, and appoints the branches. The room's loop owns it.
type spreading struct {
	node    *Node
	id      ring.RoomID
	current *heldPin
	members *members
	teller  *teller
	peers   peerMap
	load    *roomLoad
	// connected is the number of connected people here.
	connected *atomic.Int64
	loop      taskLoop
	log       *slog.Logger

	decides *spread.Spread
	// looking says that look is going to be called.
	looking bool
}

func newSpread(peersPerRoom int) *spread.Spread {
	return spread.New(spread.Limits{PeersPerNode: min(peersPerNode, peersPerRoom), PeersPerRoom: peersPerRoom})
}

// spreads reports whether the room may have branches.
func (s *spreading) spreads() bool {
	return s.members.owner == nil && s.node.cfg.Candidates != nil && s.node.cfg.Links != nil
}

// newcomer returns the branch for somebody who attaches; nil: here. The error is errAppointing.
func (s *spreading) newcomer(a attachment) (*member, error) {
	now := time.Now()
	decision := s.decides.Newcomer(now, s.seen(), true)
	if decision.Appoint != nil {
		s.obey(now, *decision.Appoint)
	}
	if decision.Wait > 0 && !a.waited {
		return nil, errAppointing
	}
	if m := s.members.branches[string(decision.To)]; m.up() && !m.gathering {
		return m, nil
	}
	return nil, nil
}

// lookSoon has the room looked at again and again while it is large.
func (s *spreading) lookSoon() {
	if !s.looking && s.spreads() && (len(s.members.branches) > 0 || s.peers.here() >= lookedAtFrom) {
		s.looking = true
		s.loop.after(spread.Every, s.look)
	}
}

func (s *spreading) look() {
	s.looking = false
	now := time.Now()
	for _, order := range s.decides.Tick(now, s.seen()) {
		s.obey(now, order)
	}
	s.lookSoon()
}

// obey carries out what was decided.
func (s *spreading) obey(now time.Time, order spread.Order) {
	switch o := order.(type) {
	case spread.Appoint:
		c := o.Candidate
		if s.appoint(&control.Place{Node: string(c.Node), Boot: string(c.Boot), Control: c.Control}, o.Why) == nil {
			s.decides.Failed(now, c.Node, c.Boot, "the room has as many branches as it may")
		}
	case spread.Gather:
		if m := s.members.branches[string(o.Node)]; m != nil {
			m.gathering = true
			s.log.Info("room gathered", "branch", string(o.Node), "why", o.Why)
			s.recordMember(events.Event{Kind: events.RoomGathered, From: o.Node, Cause: o.Why}, m)
		}
	case spread.Close:
		if m := s.members.branches[string(o.Node)]; m != nil {
			s.log.Info("branch closed", "branch", string(o.Node), "why", o.Why)
			s.members.giveUp(m)
		}
	case spread.Move:
		s.movePeople(o)
	}
}

// recordMember records what happens to a branch. It happens to each appointment of it once.
func (s *spreading) recordMember(e events.Event, m *member) {
	e.Room, e.Node, e.About = s.id, s.node.cfg.Node, fmt.Sprintf("%s/%s/%d", s.current.pin().Fence, m.place.GetNode(), m.since.UnixMilli())
	s.node.cfg.Events.Record(e)
}

// movePeople calls so many people of one node to another.
func (s *spreading) movePeople(o spread.Move) {
	from, to, place := s.members.branches[string(o.From)], s.members.branches[string(o.To)], s.place()
	if to != nil {
		place = to.place
	}
	left := o.People
	for _, p := range s.peers.inOrder() {
		switch {
		case left == 0:
			return
		case p.expected || p.place != from || !p.knowsPlaces || from == nil && p.outbox == nil || o.Silent && !p.silent():
		default:
			left--
			s.callElsewhere(p, place)
		}
	}
}

// silent reports whether the peer sends nothing.
func (p *peer) silent() bool {
	e := p.entry
	return !p.canPublish || e.GetAudioMuted() && e.GetVideoMuted() && !e.GetScreenShared() && !e.GetScreenAudio()
}

// seen is what is decided by: the room's nodes with their people and load, as far as this node knows them.
func (s *spreading) seen() spread.Room {
	n := s.node
	n.mu.Lock()
	now := time.Now()
	own, measured, limited, draining := n.egressNow(now), s.load.measured, !n.limitedSince.IsZero(), n.drain != nil
	n.mu.Unlock()
	seen := spread.Room{Candidates: func() []spread.Candidate { return n.cfg.Candidates(s.id) }}
	people, silent := map[*member]int{}, map[*member]int{}
	for _, p := range s.peers {
		if p.expected {
			continue
		}
		people[p.place]++
		if p.silent() && p.knowsPlaces {
			silent[p.place]++
		}
	}
	if connected := int(s.connected.Load()); connected >= measuredFrom {
		seen.Person = measured.Part(1 / float64(connected))
	}
	seen.Members = []spread.Member{{
		Node: n.cfg.Node, Boot: n.cfg.Boot, People: people[nil], Silent: silent[nil], Load: own, Ceiling: n.ceiling(), Room: measured,
		Links: s.sentOverLinks(measured), Limited: limited, Draining: draining,
	}}
	if len(s.members.branches) == 0 {
		return seen
	}
	told := map[ring.NodeID]spread.Candidate{}
	for _, c := range n.cfg.Candidates(s.id) {
		told[c.Node] = c
	}
	for _, node := range slices.Sorted(maps.Keys(s.members.branches)) {
		m, c := s.members.branches[node], told[ring.NodeID(node)]
		seen.Members = append(seen.Members, spread.Member{
			Node: ring.NodeID(node), Boot: pin.BootID(m.place.GetBoot()), People: people[m], Silent: silent[m], Load: c.Load, Ceiling: c.Ceiling,
			Room: seen.Person.Times(uint64(people[m])), Up: m.up(), Draining: m.draining || c.Draining,
		})
	}
	return seen
}

// sentOverLinks is the part of what the room sends that goes to branches.
func (s *spreading) sentOverLinks(measured headroom.Egress) headroom.Egress {
	now := time.Now()
	var packets float64
	for _, m := range s.members.branches {
		if m.link == nil {
			continue
		}
		sent, _ := m.link.media.Figures()
		if elapsed := now.Sub(m.countedAt); elapsed >= loadWindow {
			m.perSecond = float64(sent.GetPackets()-min(m.counted, sent.GetPackets())) / elapsed.Seconds()
			m.counted, m.countedAt = sent.GetPackets(), now
		}
		packets += m.perSecond
	}
	if measured.PacketsPerSecond == 0 {
		return headroom.Egress{}
	}
	return measured.Part(min(packets/float64(measured.PacketsPerSecond), 1))
}

// told tells operators of the room's branches.
func (s *spreading) told() (told []*control.Member, ownFill float64) {
	if len(s.members.branches) == 0 {
		return nil, 0
	}
	for _, state := range s.decides.Explain(time.Now(), s.seen()) {
		m := s.members.branches[string(state.Node)]
		if m == nil {
			ownFill = state.Fill
			continue
		}
		one := &control.Member{
			Place: m.place, People: uint32(s.peopleAt(m)), Why: m.why, SinceUnixMs: m.since.UnixMilli(), Up: m.up(), Fill: state.Fill, Stays: state.Stays,
		}
		if m.up() {
			one.Sent, one.Received = m.link.media.Figures()
		}
		told = append(told, one)
	}
	return told, ownFill
}

// changes tells operators of the last changes of the room's nodes.
func (s *spreading) changes() (told []*control.SpreadChange) {
	for _, c := range s.decides.Changes() {
		told = append(told, &control.SpreadChange{
			AtUnixMs: c.At.UnixMilli(), What: c.What, Node: string(c.Node), To: string(c.To), People: uint32(c.People), Why: c.Why,
		})
	}
	return told
}

// Spread is part of control.MediaServer.
func (s *service) Spread(ctx context.Context, request *control.SpreadRequest) (*control.SpreadReply, error) {
	reply := &control.SpreadReply{}
	var wrong error
	_, err := s.onLoop(ctx, request.GetRoom(), func(r *room) {
		reply.Held = true
		wrong = r.spreading.byHand(ring.NodeID(request.GetPlace().GetNode()), request.GetGather())
		reply.Branches, _ = r.spreading.told()
	})
	if wrong != nil {
		return nil, status.Error(codes.FailedPrecondition, wrong.Error())
	}
	return reply, err
}

var errNoSpreading = errors.New("this media node knows no others: rooms stay whole")

func (s *spreading) byHand(node ring.NodeID, gather bool) error {
	if !s.spreads() {
		return errNoSpreading
	}
	now := time.Now()
	if !gather {
		order, err := s.decides.SpreadByHand(now, s.seen(), node)
		if err == nil {
			s.obey(now, order)
		}
		return err
	}
	orders, err := s.decides.GatherByHand(now, s.seen(), node)
	for _, order := range orders {
		s.obey(now, order)
	}
	return err
}

// appoint makes a node a branch of the room, or returns it if it is one; nil: there are as many as may be.
func (s *spreading) appoint(place *control.Place, why string) *member {
	m, isNew := s.members.appoint(place, why)
	if isNew {
		s.lookSoon()
		s.log.Info("room spread", "branch", place.GetNode(), "why", why)
		s.recordMember(events.Event{Kind: events.RoomSpread, To: ring.NodeID(place.GetNode()), Cause: why}, m)
	}
	return m
}

// callElsewhere has a peer's client move its media, while it is still served where it is.
func (s *spreading) callElsewhere(p *peer, place *control.Place) {
	p.called = place.GetNode() == string(s.node.cfg.Node)
	message := &control.Elsewhere{Place: place, Live: true}
	if p.place == nil {
		s.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Elsewhere{Elsewhere: message}})
		return
	}
	s.members.tell(p.place, &control.LinkMessage{Message: &control.LinkMessage_Elsewhere{Elsewhere: &control.LinkElsewhere{Peer: string(p.id), Elsewhere: message}}})
}

func (s *spreading) peopleAt(m *member) int {
	people := 0
	for _, p := range s.peers {
		if p.place == m && !p.expected {
			people++
		}
	}
	return people
}

// place is this node as others are told of it.
func (s *spreading) place() *control.Place {
	return &control.Place{Node: string(s.node.cfg.Node), Boot: string(s.node.cfg.Boot), Control: s.current.pin().Control}
}

// sendElsewhere returns the branch where a peer that attaches has, or gets, its place; nil: here. The error is errAppointing
// or errRelinking.
func (s *spreading) sendElsewhere(p *peer, a attachment) (*member, error) {
	if !s.spreads() || !a.request.GetKnowsPlaces() {
		return nil, nil
	}
	if p != nil && !p.expected {
		switch {
		case p.called:
			return nil, nil
		case p.place.up():
			return p.place, nil
		case p.place == nil && (p.outbox != nil || p.mediaLives()):
			return nil, nil
		}
	} else if m, err := s.members.servedBy(a); m != nil || err != nil {
		return m, err
	}
	return s.newcomer(a)
}
