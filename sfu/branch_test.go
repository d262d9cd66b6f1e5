package sfu

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

var errCut = errors.New("the cable is cut")

// cables join media nodes: a node reaches another one's control port through them.
type cables struct {
	t     *testing.T
	cut   atomic.Bool
	mu    sync.Mutex // guards conns
	conns map[string]*grpc.ClientConn
}

func newCables(t *testing.T) *cables {
	c := &cables{t: t, conns: map[string]*grpc.ClientConn{}}
	t.Cleanup(c.pull)
	return c
}

// pull breaks all streams over the cables.
func (c *cables) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, conn := range c.conns {
		_ = conn.Close()
		delete(c.conns, at)
	}
}

func (c *cables) links(at string) (control.LinksClient, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[at] == nil {
		conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		c.conns[at] = conn
	}
	return control.NewLinksClient(c.conns[at]), nil
}

// spreadRoom is a room whose owner is the first of several nodes; the others are branches.
type spreadRoom struct {
	*stage

	branches []*stage
	cables   *cables
}

func newSpreadRoom(t *testing.T, branches int, edits ...func(*Config)) *spreadRoom {
	t.Helper()
	cables := newCables(t)
	s := &spreadRoom{cables: cables}
	edits = append([]func(*Config){func(c *Config) { c.Links, c.Candidates = cables.links, s.candidates }}, edits...)
	s.stage = newStage(t, "owner", edits...)
	for i := range branches {
		s.branches = append(s.branches, newStage(t, "branch-"+strconv.Itoa(i+1), edits...))
	}
	return s
}

// candidates are the other nodes, all of them idle.
func (s *spreadRoom) candidates(ring.RoomID) []spread.Candidate {
	var all []spread.Candidate
	for _, b := range s.branches {
		cfg := b.node.cfg
		ceiling := headroom.Egress{BitsPerSecond: cfg.CeilingBitsPerSecond, PacketsPerSecond: cfg.CeilingPacketsPerSecond}
		all = append(all, spread.Candidate{Node: cfg.Node, Boot: cfg.Boot, Control: cfg.Control, Able: true, Ceiling: ceiling})
	}
	return all
}

// spread appoints all branches, and waits until their links are up.
func (s *spreadRoom) spread() {
	s.t.Helper()
	for i, b := range s.branches {
		request := &control.SpreadRequest{Room: "room", Place: b.node.roomPlace(), Why: "a test"}
		if reply, err := s.client.Spread(s.t.Context(), request); err != nil || !reply.GetHeld() {
			s.t.Fatalf("spread: %v, %v", reply, err)
		}
		eventually(s.t, "the link is up", func() bool { return s.up() == i+1 })
	}
}

// members are the owner's branches, as operators are told of them.
func (s *spreadRoom) members() []*control.Member {
	for _, r := range s.rooms().GetRooms() {
		if r.GetRoom() == "room" && r.GetOwner() == "" {
			return r.GetBranches()
		}
	}
	return nil
}

func (s *spreadRoom) up() int {
	up := 0
	for _, m := range s.members() {
		if m.GetUp() {
			up++
		}
	}
	return up
}

// watcher is an Attach of somebody who only watches, and whose client can be sent elsewhere.
func (s *spreadRoom) watcher(peer string, generation uint64) *control.PeerMessage {
	message := s.attachMessage(s.pin(s.epoch), "room", peer, generation)
	a := message.GetAttach()
	a.CanPublish, a.KnowsPlaces, a.KnowsRosterChanges = false, true, true
	return message
}

// follow attaches where the nodes say, beginning with the owner.
func (s *spreadRoom) follow(first *control.PeerMessage) (*attachStream, *stage, *control.Attached) {
	s.t.Helper()
	at := s.stage
	for range 10 {
		e := at.dial(first)
		event := e.next()
		if attached := event.GetAttached(); attached != nil {
			return e, at, attached
		}
		refused := event.GetRefused()
		if refused.GetCode() != control.Refusal_REFUSAL_ELSEWHERE {
			s.t.Fatalf("refused: %v", event)
		}
		at = s.stage
		for _, b := range s.branches {
			if refused.GetElsewhere().GetNode() == string(b.node.cfg.Node) {
				at = b
			}
		}
	}
	s.t.Fatal("sent from node to node")
	return nil, nil, nil
}

// roomPlace is the place of a node.
func (n *Node) roomPlace() *control.Place {
	return &control.Place{Node: string(n.cfg.Node), Boot: string(n.cfg.Boot), Control: n.cfg.Control}
}

func knowsPlaces(a *control.Attach) { a.KnowsPlaces, a.KnowsRosterChanges = true, true }

// TestARoomOnThreeNodes: people are sent to all of its nodes, see and hear the owner's publisher there, and are in everybody's roster.
func TestARoomOnThreeNodes(t *testing.T) {
	s := newSpreadRoom(t, 2)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	camera := newMediaClient(t, 'h', true, 0)
	camera.negotiate(host, nil)
	camera.goSend()
	s.spread()
	at := map[*stage]int{}
	var viewers []*mediaClient
	for i := range 6 {
		e, where, attached := s.follow(s.watcher("viewer-"+strconv.Itoa(i), 1))
		at[where]++
		if !slices.ContainsFunc(attached.GetRoster(), func(p *control.Peer) bool { return p.GetId() == "host" }) {
			t.Errorf("viewer %d sees %q", i, rosterIDs(attached.GetRoster()))
		}
		v := newMediaClient(t, 'v', false, 1)
		v.negotiate(e, nil)
		viewers = append(viewers, v)
	}
	for _, one := range s.branches {
		if at[one] == 0 || at[one] > 3 {
			t.Errorf("%d of 6 viewers at %s", at[one], one.node.cfg.Node)
		}
	}
	for i, v := range viewers {
		eventually(t, "viewer "+strconv.Itoa(i)+" sees and hears the host", func() bool { return v.sees('h', 10) })
	}
	for _, m := range s.members() {
		if m.GetPeople() == 0 || m.GetSent().GetLayers() != 2 {
			t.Errorf("of %s the owner says: %v", m.GetPlace().GetNode(), m)
		}
	}
	for _, b := range s.branches {
		if held := b.node.Held(); len(held) > 0 {
			t.Errorf("%s says that it owns %v", b.node.cfg.Node, held)
		}
	}
}

// TestWhatIsSaidAtABranch: hands, mutes, names, chat and leaves of people at one branch reach everybody at all nodes.
func TestWhatIsSaidAtABranch(t *testing.T) {
	s := newSpreadRoom(t, 2)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	first := s.branches[0]
	one, _ := attachedAt(first, s.watcher("one", 1))
	two, _ := attachedAt(s.branches[1], s.watcher("two", 1))
	everybody := []*attachStream{host, one, two}
	one.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "hello", Id: "1"}}})
	for _, e := range everybody {
		e.await("a line", func(e *control.PeerEvent) bool {
			return e.GetChat().GetText() == "hello" && e.GetChat().GetPeer() == "one"
		})
	}
	two.send(&control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: true}}})
	two.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "Zwei"}}})
	for _, e := range everybody {
		e.await("a hand and a name", func(e *control.PeerEvent) bool {
			return changed(t, e, func(p *control.Peer) bool {
				return p.GetId() == "two" && p.GetName() == "Zwei" && p.GetHandRaisedUnixMs() > 0
			})
		})
	}
	two.send(&control.PeerMessage{Message: &control.PeerMessage_React{React: &control.React{Emoji: "!"}}})
	for _, e := range everybody {
		e.await("a reaction", func(e *control.PeerEvent) bool { return len(e.GetReactions().GetReactions()) == 1 })
	}
	two.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	for _, e := range everybody[:2] {
		e.await("a leave", func(e *control.PeerEvent) bool { return left(t, e, "two") })
	}
	if _, err := s.client.Remove(t.Context(), &control.RemoveRequest{Room: "room", Peer: "one"}); err != nil {
		t.Fatal(err)
	}
	if last := one.awaitEnd(); last.GetRefused().GetCode() != control.Refusal_REFUSAL_REMOVED {
		t.Errorf("the last word to a removed person is %v", last)
	}
	if refused := first.refusal(s.watcher("one", 2)); refused.GetCode() != control.Refusal_REFUSAL_REMOVED {
		t.Errorf("a removed person comes back to the branch: %v", refused)
	}
}

func changed(t *testing.T, e *control.PeerEvent, is func(*control.Peer) bool) bool {
	t.Helper()
	changes, err := control.DecodeRosterChanges(e.GetRosterChanges())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(changes, func(c *control.RosterChange) bool { return is(c.GetUpdated()) })
}

func left(t *testing.T, e *control.PeerEvent, peer string) bool {
	t.Helper()
	changes, err := control.DecodeRosterChanges(e.GetRosterChanges())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(changes, func(c *control.RosterChange) bool { return c.GetLeft() == peer })
}

// TestTheCapHoldsOverAllNodes: the owner admits, also those who come to a branch.
func TestTheCapHoldsOverAllNodes(t *testing.T) {
	s := newSpreadRoom(t, 1, func(c *Config) { c.Limits.PeersPerRoom = 3 })
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	for _, peer := range []string{"one", "two"} {
		attachedAt(s.branches[0], s.watcher(peer, 1))
	}
	if refused := s.branches[0].refusal(s.watcher("three", 1)); refused.GetCode() != control.Refusal_REFUSAL_ROOM_FULL {
		t.Errorf("the fourth of three: %v", refused)
	}
	if refused := s.branches[0].refusal(s.watcher("two", 1)); refused.GetCode() != control.Refusal_REFUSAL_STALE_GENERATION {
		t.Errorf("a second place with the same generation: %v", refused)
	}
}

// TestAPersonHasOnePlace: who attaches at another node of the room, with a higher generation, has no place at the former one.
func TestAPersonHasOnePlace(t *testing.T) {
	s := newSpreadRoom(t, 2)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	first, second := s.branches[0], s.branches[1]
	e, _ := attachedAt(first, s.watcher("one", 1))
	there, _ := attachedAt(second, s.watcher("one", 2))
	e.awaitEnd()
	eventually(t, "the former node has nobody", func() bool { return first.heldPeer("room", "one") == nil && second.heldPeer("room", "one") != nil })
	// A client that cannot be sent elsewhere comes to the owner.
	message := s.watcher("one", 3)
	message.GetAttach().KnowsPlaces = false
	if _, at, _ := s.follow(message); at != s.stage {
		t.Errorf("an older client is at %s", at.node.cfg.Node)
	}
	there.awaitEnd()
	if s.heldPeer("room", "one") == nil {
		t.Error("the owner does not have who attached there")
	}
}

func attachedAt(at *stage, first *control.PeerMessage) (*attachStream, *control.Attached) {
	at.t.Helper()
	e := at.dial(first)
	event := e.next()
	if event.GetAttached() == nil {
		at.t.Fatalf("not attached at %s: %v", at.node.cfg.Node, event)
	}
	return e, event.GetAttached()
}

// TestACutLink: people go on, and both sides know the same room when the link is back. After a long cut everybody at the branch has a
// place elsewhere.
func TestACutLink(t *testing.T) {
	s := newSpreadRoom(t, 1)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	at := s.branches[0]
	e, _ := attachedAt(at, s.watcher("one", 1))
	s.cables.pull()
	host.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "Host"}}})
	e.await("the roster after the cut", func(e *control.PeerEvent) bool {
		named := func(p *control.Peer) bool { return p.GetId() == "host" && p.GetName() == "Host" }
		return slices.ContainsFunc(e.GetRoster().GetPeers(), named) || changed(t, e, named)
	})
	if at.heldPeer("room", "one") == nil {
		t.Fatal("the branch has lost somebody at a short cut")
	}
	s.cables.cut.Store(true)
	s.cables.pull()
	e.await("the way elsewhere", func(e *control.PeerEvent) bool { return e.GetElsewhere() != nil })
	eventually(t, "the owner has given the branch up", func() bool { return len(s.members()) == 0 })
	if _, at, _ := s.follow(s.watcher("one", 2)); at != s.stage {
		t.Errorf("the place elsewhere is at %s", at.node.cfg.Node)
	}
	e.cancel()
	eventually(t, "whom the branch has sent away is soon forgotten there", func() bool {
		soon := false
		r := at.node.branchOf("room")
		err := r.do(t.Context(), func() {
			p := r.peers["one"]
			soon = p == nil || p.outbox == nil && time.Until(p.deadline) <= sentAwayGrace
		})
		return err == nil && soon
	})
}

// TestABranchDies: the owner gives it up, and its people get other places.
func TestABranchDies(t *testing.T) {
	s := newSpreadRoom(t, 2)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	at := s.branches[0]
	e, _ := attachedAt(at, s.watcher("one", 1))
	at.stop()
	e.awaitEnd()
	eventually(t, "the owner has given the branch up", func() bool { return len(s.members()) == 1 })
	if _, again, _ := s.follow(s.watcher("one", 2)); again == at {
		t.Error("the place elsewhere is at the dead branch")
	}
}

// TestARoomIsGathered: its people are told to come, the branch forwards until they have, and closes.
func TestARoomIsGathered(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	at := s.branches[0]
	e, _ := attachedAt(at, s.watcher("one", 1))
	if _, err := s.client.Spread(t.Context(), &control.SpreadRequest{Room: "room", Gather: true}); err != nil {
		t.Fatal(err)
	}
	e.await("the way back", func(e *control.PeerEvent) bool { return e.GetElsewhere().GetPlace().GetNode() == "owner" })
	if _, back, _ := s.follow(s.watcher("one", 2)); back != s.stage {
		t.Errorf("back at %s", back.node.cfg.Node)
	}
	eventually(t, "the branch is closed", func() bool { return len(s.members()) == 0 && len(at.rooms().GetRooms()) == 0 })
}

// TestTheOwnerIsOutranked: a room that moves to another node takes the people of its branches along.
func TestTheOwnerIsOutranked(t *testing.T) {
	s := newSpreadRoom(t, 1)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	e, _ := attachedAt(s.branches[0], s.watcher("one", 1))
	higher := s.pin(s.epoch + 1)
	higher.Node, higher.Boot = "elsewhere", "1769000000001-e"
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher)}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*attachStream{host, e} {
		if last := e.awaitEnd(); last.GetFenced().GetPin().GetNode() != "elsewhere" {
			t.Errorf("the last word is %v", last)
		}
	}
}

// TestPublishersAtBranches: who publishes at a branch is seen at the owner and at another branch.
func TestPublishersAtBranches(t *testing.T) {
	s := newSpreadRoom(t, 2)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	near := newMediaClient(t, 'n', false, 1)
	near.negotiate(host, nil)
	s.spread()
	message := s.attachMessage(s.pin(s.epoch), "room", "speaker", 1)
	knowsPlaces(message.GetAttach())
	speaks, _ := attachedAt(s.branches[0], message)
	camera := newMediaClient(t, 's', true, 0)
	camera.negotiate(speaks, nil)
	camera.goSend()
	watches, _ := attachedAt(s.branches[1], s.watcher("one", 1))
	far := newMediaClient(t, 'f', false, 1)
	far.negotiate(watches, nil)
	eventually(t, "the owner's people see the speaker", func() bool { return near.sees('s', 10) })
	eventually(t, "the other branch's people see the speaker", func() bool { return far.sees('s', 10) })
	speaks.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_CAMERA, Muted: true}}})
	watches.await("the mute", func(e *control.PeerEvent) bool {
		return changed(t, e, func(p *control.Peer) bool { return p.GetId() == "speaker" && p.GetVideoMuted() })
	})
}

// TestABranchIsPromoted: when the owner is gone and the room's pin names a branch, people there keep their connections and everybody in the
// roster.
func TestABranchIsPromoted(t *testing.T) {
	s := newSpreadRoom(t, 2)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	first := s.branches[0]
	e, _ := attachedAt(first, s.watcher("one", 1))
	viewer := newMediaClient(t, 'v', false, 1)
	viewer.negotiate(e, nil)
	e.awaitConnected()
	message := s.attachMessage(s.pin(s.epoch), "room", "speaker", 1)
	knowsPlaces(message.GetAttach())
	speaks, _ := attachedAt(first, message)
	camera := newMediaClient(t, 's', true, 0)
	camera.negotiate(speaks, nil)
	camera.goSend()
	eventually(t, "the viewer sees the speaker", func() bool { return viewer.sees('s', 5) })
	s.stop()
	again := first.attachMessage(first.pin(s.epoch+1), "room", "one", 2)
	knowsPlaces(again.GetAttach())
	back, attached := attachedAt(first, again)
	if !attached.GetResumed() || rosterIDs(attached.GetRoster()) != "host one speaker " && rosterIDs(attached.GetRoster()) != "host speaker one " {
		t.Errorf("after the promotion: resumed %v, roster %q", attached.GetResumed(), rosterIDs(attached.GetRoster()))
	}
	if last := speaks.awaitEnd().GetFenced(); last.GetPin().GetNode() != string(first.node.cfg.Node) || last.GetLive() {
		t.Errorf("the others are told %v", last)
	}
	viewer.forget()
	eventually(t, "the viewer sees the speaker after the promotion", func() bool { return viewer.sees('s', 5) })
	back.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "we go on", Id: "1"}}})
	back.await("a line", func(e *control.PeerEvent) bool { return e.GetChat().GetText() == "we go on" })
	if held := first.node.Held(); len(held) != 1 || first.node.branchOf("room") != nil {
		t.Errorf("the promoted branch holds %v", held)
	}
	host := first.attachMessage(first.pin(s.epoch+1), "room", "host", 2)
	if _, attached := attachedAt(first, host); !attached.GetWasHere() {
		t.Error("the former owner's people are not expected")
	}
}

// TestARoomMovesToItsBranch: the owner is told that the pin names a branch, whose people are told no other node.
func TestARoomMovesToItsBranch(t *testing.T) {
	s := newSpreadRoom(t, 1)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	first := s.branches[0]
	e, _ := attachedAt(first, s.watcher("one", 1))
	higher := first.pin(s.epoch + 1)
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher), Live: true}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*attachStream{host, e} {
		if last := e.awaitEnd().GetFenced(); last.GetPin().GetNode() != string(first.node.cfg.Node) || !last.GetLive() {
			t.Errorf("the last word is %v", last)
		}
	}
	eventually(t, "the branch owns the room", func() bool { return len(first.node.Held()) == 1 })
}

// TestTheOtherBranchesGoOn: the owner dies, or gives the room away, and one of its two branches becomes the owner. The client at the
// other one keeps its connection.
func TestTheOtherBranchesGoOn(t *testing.T) {
	for _, how := range []string{"the owner dies", "the room is moved"} {
		t.Run(how, func(t *testing.T) {
			s := newSpreadRoom(t, 2)
			s.attach("room", "host", 1, knowsPlaces)
			s.spread()
			first, second := s.branches[0], s.branches[1]
			message := s.attachMessage(s.pin(s.epoch), "room", "speaker", 1)
			knowsPlaces(message.GetAttach())
			speaks, _ := attachedAt(first, message)
			camera := newMediaClient(t, 's', true, 0)
			camera.negotiate(speaks, nil)
			camera.goSend()
			e, _ := attachedAt(second, s.watcher("one", 1))
			viewer := newMediaClient(t, 'v', false, 1)
			viewer.negotiate(e, nil)
			e.awaitConnected()
			eventually(t, "the viewer sees the speaker", func() bool { return viewer.sees('s', 5) })
			higher := first.pin(s.epoch + 1)
			if how == "the owner dies" {
				s.stop()
			} else if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher), Live: true}); err != nil {
				t.Fatal(err)
			}
			under := func(peer string) *control.PeerMessage {
				again := first.attachMessage(higher, "room", peer, 2)
				again.GetAttach().ServedBy = string(second.node.cfg.Boot)
				knowsPlaces(again.GetAttach())
				return again
			}
			// Whom nobody has yet is at the owner.
			there, _ := attachedAt(first, first.attachMessage(higher, "room", "speaker", 2))
			if refused := first.dial(under("one")).next().GetRefused(); refused.GetElsewhere().GetBoot() != string(second.node.cfg.Boot) {
				t.Fatalf("the viewer is refused: %v", refused)
			}
			again := under("one")
			again.GetAttach().Generation = 3
			back, attached := attachedAt(second, again)
			if !attached.GetResumed() || len(attached.GetRoster()) != 3 {
				t.Errorf("after the promotion: resumed %v, roster %q", attached.GetResumed(), rosterIDs(attached.GetRoster()))
			}
			live := how == "the room is moved"
			if last := e.awaitEnd().GetFenced(); last.GetPin().GetNode() != string(first.node.cfg.Node) || last.GetLive() != live {
				t.Errorf("the viewer's former stream ends with %v", last)
			}
			viewer.forget()
			eventually(t, "the viewer sees the speaker after the promotion", func() bool { return viewer.sees('s', 5) })
			back.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "we go on", Id: "1"}}})
			there.await("a line", func(e *control.PeerEvent) bool { return e.GetChat().GetText() == "we go on" })
		})
	}
}

// slowLinks holds links back where they begin.
type slowLinks struct {
	control.LinksClient

	begun chan<- struct{}
	goOn  <-chan struct{}
}

func (l *slowLinks) Link(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[control.LinkMessage, control.LinkMessage], error) {
	l.begun <- struct{}{}
	<-l.goOn
	return l.LinksClient.Link(ctx, opts...)
}

// TestARoomEndsWhileALinkBegins: the link has a task for the room's loop, which has ended.
func TestARoomEndsWhileALinkBegins(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	s := newSpreadRoom(t, 1, func(c *Config) {
		dial := c.Links
		c.Links = func(at string) (control.LinksClient, error) {
			client, err := dial(at)
			return &slowLinks{LinksClient: client, begun: begun, goOn: goOn}, err
		}
	})
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	if reply, err := s.client.Spread(t.Context(), &control.SpreadRequest{Room: "room", Place: s.branches[0].node.roomPlace(), Why: "a test"}); err != nil || !reply.GetHeld() {
		t.Fatalf("spread: %v, %v", reply, err)
	}
	<-begun
	s.node.mu.Lock()
	r := s.node.rooms["room"]
	s.node.mu.Unlock()
	var branch *member
	if err := r.do(t.Context(), func() { branch = r.members.branches[string(s.branches[0].node.cfg.Node)] }); err != nil {
		t.Fatal(err)
	}
	elsewhere := s.pin(s.epoch + 1)
	elsewhere.Node, elsewhere.Boot = "another", "1769000000000-another"
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(elsewhere)}); err != nil {
		t.Fatal(err)
	}
	<-branch.ending
	close(goOn)
	if last := host.awaitEnd(); last.GetFenced().GetPin().GetNode() != "another" {
		t.Errorf("the last word is %v", last)
	}
}

// TestABranchThatWasAwayHasNoneOfItsFormerPublishers: somebody moves to the owner while the link to its branch is cut. The branch, which still
// has the connection, takes nobody's picture away when it is back.
func TestABranchThatWasAwayHasNoneOfItsFormerPublishers(t *testing.T) {
	s := newSpreadRoom(t, 1)
	e, _ := s.attach("room", "one", 1, knowsPlaces)
	viewer := newMediaClient(t, 'v', false, 1)
	viewer.negotiate(e, nil)
	e.awaitConnected()
	s.spread()
	message := s.attachMessage(s.pin(s.epoch), "room", "speaker", 1)
	knowsPlaces(message.GetAttach())
	speaks, _ := attachedAt(s.branches[0], message)
	former := newMediaClient(t, 's', true, 0)
	former.negotiate(speaks, nil)
	former.goSend()
	eventually(t, "the viewer sees the speaker", func() bool { return viewer.sees('s', 5) })
	s.cables.cut.Store(true)
	s.cables.pull()
	eventually(t, "the link is down", func() bool { return s.up() == 0 })
	again, _ := s.attach("room", "speaker", 2, knowsPlaces)
	camera := newMediaClient(t, 'n', true, 0)
	camera.negotiate(again, nil)
	camera.goSend()
	eventually(t, "the viewer sees the speaker's new picture", func() bool { return viewer.sees('n', 5) })
	s.cables.cut.Store(false)
	eventually(t, "the link is up again", func() bool { return s.up() == 1 })
	viewer.forget()
	eventually(t, "the viewer still sees it", func() bool { return viewer.sees('n', 30) })
}

// writtenRosters notes which rosters a node writes.
type writtenRosters struct{ rooms []ring.RoomID }

func (w *writtenRosters) WriteRosters(_ context.Context, changes []roster.Change) ([]roster.Outcome, error) {
	for _, c := range changes {
		w.rooms = append(w.rooms, c.Room)
	}
	return make([]roster.Outcome, len(changes)), nil
}

// TestABranchWritesNoRoster: the store would take its writes for later ones of the owner, and forget who is in the room.
func TestABranchWritesNoRoster(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	attachedAt(s.branches[0], s.watcher("one", 1))
	for at, wants := range map[*stage]int{s.stage: 1, s.branches[0]: 0} {
		store := &writtenRosters{}
		at.node.Rosters().Store = store
		if err := at.node.Rosters().Flush(t.Context()); err != nil || len(store.rooms) != wants {
			t.Errorf("%s writes the rosters of %v, %v: want %d", at.node.cfg.Node, store.rooms, err, wants)
		}
	}
}

// TestTheFormerNodeOfAPersonIsSilent: when the connection that a person left ends, the slots of the one at the branch stay as they are.
func TestTheFormerNodeOfAPersonIsSilent(t *testing.T) {
	s := newSpreadRoom(t, 1)
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	camera := newMediaClient(t, 'h', true, 0)
	camera.negotiate(host, nil)
	camera.goSend()
	e, _ := attachedAt(s.stage, s.watcher("one", 1))
	former := newMediaClient(t, 'f', false, 1)
	former.negotiate(e, nil)
	e.awaitConnected()
	s.spread()
	there, _ := attachedAt(s.branches[0], s.watcher("one", 2))
	viewer := newMediaClient(t, 'v', false, 1)
	viewer.negotiate(there, nil)
	eventually(t, "the branch shows the host", func() bool { return viewer.sees('h', 5) })
	if err := former.pc.Close(); err != nil {
		t.Fatal(err)
	}
	r := s.roomOf()
	eventually(t, "the owner has let the former connection go", func() bool {
		gone := false
		return r.do(t.Context(), func() { gone = len(r.people.lingering) == 0 }) == nil && gone && len(r.media.Table("one")) == 0
	})
	there.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "the last word", Id: "1"}}})
	there.await("a line", func(e *control.PeerEvent) bool { return e.GetChat().GetText() == "the last word" })
	if slots := there.lastSlots(); len(slots) != 2 || slots[0].GetPeer() != "host" || slots[1].GetPeer() != "host" {
		t.Errorf("the slots at the branch are %v", slots)
	}
}

// TestWhatAnApplicationChangesReachesBranches: the room's metadata, and a person's metadata and permissions.
func TestWhatAnApplicationChangesReachesBranches(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	e, _ := attachedAt(s.branches[0], s.watcher("one", 1))
	description := roster.Description{Metadata: "a room's"}
	s.attach("room", "two", 1, func(a *control.Attach) { a.Settings = "7 3 0 " + description.Encode() })
	e.await("the room's metadata", func(e *control.PeerEvent) bool { return e.GetRoomState().GetMetadata() == "a room's" })
	words := "a person's"
	update := &control.Update{Metadata: &words, Permission: &control.Permission{CanPublish: true, Sources: 1}}
	if _, err := s.client.Moderate(t.Context(), &control.ModerateRequest{Room: "room", Act: control.Act_ACT_UPDATE, Peer: "one", Update: update}); err != nil {
		t.Fatal(err)
	}
	granted, known := false, false
	e.await("what the application granted", func(e *control.PeerEvent) bool {
		granted = granted || e.GetGranted().GetPermission().GetCanPublish() && e.GetGranted().GetMetadata() == words
		known = known || changed(t, e, func(p *control.Peer) bool { return p.GetId() == "one" && p.GetMetadata() == words })
		return granted && known
	})
	r := s.branches[0].node.branchOf("room")
	if err := r.do(t.Context(), func() {
		if p := r.peers["one"]; !p.canPublish || p.sources != 1 {
			t.Errorf("the branch lets the person publish: %v, sources %d", p.canPublish, p.sources)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, attached := attachedAt(s.branches[0], s.watcher("three", 1)); attached.GetRoomState().GetMetadata() != "a room's" {
		t.Errorf("a newcomer at the branch is told of the room: %v", attached.GetRoomState())
	}
}
