package sfu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

const (
	// mostBranches bounds what the links of a room cost its owner.
	mostBranches = 16
	// linkAgain is the pause before a link that was cut is made anew.
	linkAgain = 50 * time.Millisecond
	// After so long without a link the owner gives the branch's people places elsewhere, and the branch sends them there.
	branchLostAfter = 2 * time.Second
	// branchLook is how often a newcomer that waits for a branch looks.
	branchLook = 10 * time.Millisecond
	// appointBytes leaves room below what one message of control may have.
	appointBytes = 512 << 10
)

var (
	errLinkEnded = errors.New("the link ended")
	errNoBranch  = errors.New("the node refuses to be a branch")
	errRelinking = errors.New("the branch that has this person is not linked yet")
)

// branches is the owner's side of a room on several nodes. It keeps the links to the branches, tells a branch how the room is, lets people in
// there, and does what the branches say. The value members has who they are, and spreading appoints them.
//
// The order of the waits: the room's loop waits for no link and for no lock but Node.mu, which is held by nobody who waits for a
// room. A link's goroutine may wait for a task of the loop, and such a wait ends with the loop once room.run has closed done. So room.run
// waits for the links without a limit only after it has closed done.
type branches struct {
	node      *Node
	id        ring.RoomID
	current   *heldPin
	members   *members
	teller    *teller
	roll      *roll
	acts      *acts
	people    *people
	spreading *spreading
	messages  *messages
	reoffers  *reoffers
	state     *roomState
	peers     peerMap
	media     *forward.Room
	// batch sends what goes over the links.
	batch *egress.Batch
	loop  taskLoop
	log   *slog.Logger
}

// keepLink makes the link to a branch, again and again, until the room gives the branch up.
func (b *branches) keepLink(ctx context.Context, m *member) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-m.ended:
			end()
		case <-ctx.Done():
		}
	}()
	for {
		err := b.join(ctx, m)
		select {
		case <-m.ending:
			return
		case <-ctx.Done():
			return
		default:
		}
		b.loop.post(func() { b.cut(m, err) })
		again := time.NewTimer(linkAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// join has the room joined to a branch until the link breaks.
func (b *branches) join(ctx context.Context, m *member) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	n := b.node
	if n.cfg.Links == nil {
		return errNoBranch
	}
	client, err := n.cfg.Links(m.place.GetControl())
	if err != nil {
		return fmt.Errorf("reach branch: %w", err)
	}
	there := cascade.Peer{Node: ring.NodeID(m.place.GetNode()), Boot: pin.BootID(m.place.GetBoot()), Control: m.place.GetControl()}
	// A frozen node answers nothing.
	joining, joined := context.WithTimeout(ctx, branchLostAfter)
	defer joined()
	media, err := n.join(joining, there, cascade.LinkConfig{Room: b.media, Batch: b.batch, PassesOn: true, Log: b.log})
	if err != nil {
		return err
	}
	stream, err := client.Link(ctx)
	if err != nil {
		return fmt.Errorf("link to branch: %w", err)
	}
	s := n.newLinkStream(media, b.current, b.log)
	s.beat.beats = &m.beats
	if err := b.loop.do(ctx, func() { b.begin(m, s) }); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	defer s.end()
	running.Go(func() {
		if s.write(stream.Send) == nil {
			// The branch reads the end, and that it is released by it.
			_ = stream.CloseSend()
			return
		}
		end()
	})
	return s.serve(ctx, stream.Recv, func(message *control.LinkMessage) {
		if layers := message.GetLayers(); layers != nil {
			b.sift(ctx, m, layers)
			s.media.Take(message)
			return
		}
		b.hear(ctx, m, s, message)
	})
}

// sift leaves out layers of people who are elsewhere by now: a branch that was frozen, or cut off, still has their connections, and
// a layer takes the place of an earlier one.
func (b *branches) sift(ctx context.Context, m *member, layers *control.LinkLayers) {
	_ = b.loop.do(ctx, func() { // an error ends the link
		layers.Added = slices.DeleteFunc(layers.GetAdded(), func(l *control.LinkLayer) bool {
			p := b.peers[forward.PeerID(l.GetPeer())]
			return p == nil || p.place != m
		})
	})
}

// begin tells a branch how the room is. From then on it hears of every change.
func (b *branches) begin(m *member, s *linkStream) {
	if !b.members.has(m) {
		// The branch was given up while the link was dialled.
		s.end()
		return
	}
	// What waits is told before the snapshot that has it.
	b.roll.tellChanges()
	m.link, m.ready = s, false
	b.messages.linked.Store(true)
	for _, part := range b.appointment(m) {
		b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Appoint{Appoint: part}})
	}
	// The branch may have missed some while the link was cut.
	for _, line := range b.acts.lines.missed(0, 0, b.node.cfg.Grace) {
		b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Told{Told: chatEvent(line)}})
	}
	b.members.tellOthers()
	if b.roll.audience.told > 0 {
		b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Told{Told: b.current.stamp(b.roll.audienceEvent())}})
	}
}

// appointment is the room as a branch is told of it, in parts that each fit a message.
func (b *branches) appointment(m *member) []*control.Appoint {
	part := &control.Appoint{
		Pin: control.PinProto(b.current.pin()), Room: string(b.id), Run: b.roll.run, Seq: b.roll.version.seq,
		Node: string(b.node.cfg.Node), Boot: string(b.node.cfg.Boot), Control: b.current.pin().Control,
		Settings: b.state.read, Lines: b.acts.lines.last, Demoted: b.acts.moderation.demotedProto(),
	}
	for id := range b.acts.moderation.removed {
		part.Removed = append(part.Removed, string(id))
	}
	parts, size := []*control.Appoint{part}, proto.Size(part)
	for _, p := range b.peers.inOrder() {
		yours := p.place == m
		if (p.entry.GetHidden() || p.entry.GetUnlisted()) && !yours {
			continue
		}
		told := &control.LinkPeer{Entry: p.entry, Generation: p.generation, Yours: yours, Expected: p.expected, Lines: p.chatFrom}
		if size += proto.Size(told); size > appointBytes {
			part.More = true
			part, size = &control.Appoint{}, proto.Size(told)
			parts = append(parts, part)
		}
		part.Peers = append(part.Peers, told)
	}
	return parts
}

// cut notes that a link is down, and after a while gives the branch up.
func (b *branches) cut(m *member, err error) {
	if !b.members.has(m) {
		return
	}
	if m.link != nil {
		if m.ready { // else it has been cut since before
			m.cutAt = time.Now()
		}
		m.link = nil
		b.log.Info("link to branch cut: made anew", "branch", m.place.GetNode(), "error", err)
	}
	if errors.Is(err, errNoBranch) || time.Since(m.cutAt) >= branchLostAfter {
		b.lose(m, err)
	}
}

// lose gives a branch up. Its people have the grace time to ask for another place.
func (b *branches) lose(m *member, err error) {
	b.log.Warn("branch given up: its people get places elsewhere", "branch", m.place.GetNode(), "error", err)
	b.members.giveUp(m)
	b.spreading.decides.Failed(time.Now(), ring.NodeID(m.place.GetNode()), pin.BootID(m.place.GetBoot()), err.Error())
	for _, p := range b.peers {
		if p.place == m {
			p.place = nil
			b.teller.detach(p)
		}
	}
	b.people.counted()
}

// await waits until up is true on the room's loop, or for so long.
func (b *branches) await(ctx context.Context, wait time.Duration, up func() bool) {
	look := time.NewTicker(branchLook)
	defer look.Stop()
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		isUp := false
		if b.loop.do(ctx, func() { isUp = up() }) != nil || isUp {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hear does what a branch says. It runs on the link's goroutine.
func (b *branches) hear(ctx context.Context, m *member, s *linkStream, message *control.LinkMessage) {
	if enter := message.GetEnter(); enter != nil {
		b.enter(ctx, m, enter)
		return
	}
	if data := message.GetData(); data != nil {
		b.messages.hear(data)
	}
	b.loop.post(func() {
		if m.link == s {
			b.heed(m, message)
		}
	})
}

func (b *branches) heed(m *member, message *control.LinkMessage) {
	switch said := message.GetMessage().(type) {
	case *control.LinkMessage_Appointed:
		b.heedAppointed(m, said.Appointed)
	case *control.LinkMessage_Left:
		b.heedLeft(m, forward.PeerID(said.Left))
	case *control.LinkMessage_Away:
		p := b.peers[forward.PeerID(said.Away.GetPeer())]
		switch {
		case p == nil || p.place != m:
		case said.Away.GetGone():
			p.place = nil
			b.teller.detach(p)
		default:
			p.awayThere, p.generation = said.Away.GetAway(), max(p.generation, said.Away.GetGeneration())
		}
	case *control.LinkMessage_Starved:
		b.reoffers.heed(m, said.Starved)
	case *control.LinkMessage_Said:
		if p := b.peers[forward.PeerID(said.Said.GetPeer())]; p != nil && p.place == m {
			b.heedSaid(p, said.Said.GetMessage())
		}
	case *control.LinkMessage_Data:
		b.messages.tell(said.Data, m)
	default:
		// A branch of a later version says more.
	}
}

// heedLeft removes somebody who has left at a branch. If the room does not know of anybody, the people of the branch do.
func (b *branches) heedLeft(m *member, id forward.PeerID) {
	p := b.peers[id]
	switch {
	case p == nil:
		left, err := control.EncodeRosterChanges([]*control.RosterChange{{Change: &control.RosterChange_Left{Left: string(id)}}})
		if err == nil {
			b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Told{Told: b.current.stamp(&control.PeerEvent{
				Seq: b.roll.version.seq, Event: &control.PeerEvent_RosterChanges{RosterChanges: left},
			})}})
		}
	case p.place == m:
		b.people.remove(p, "left at a branch")
	}
}

// heedAppointed takes in whom a branch has: of people who are elsewhere by now it is told, and who is not there any more is waited for.
func (b *branches) heedAppointed(m *member, told *control.Appointed) {
	if refused := told.GetRefused(); refused != nil {
		switch {
		case refused.GetCode() == control.Refusal_REFUSAL_DRAINING && m.ready:
			m.draining = true
		default:
			b.lose(m, fmt.Errorf("%w: %s", errNoBranch, refused.GetMessage()))
		}
		return
	}
	m.ready = true
	for _, id := range told.GetRemoved() {
		b.acts.moderation.remove(forward.PeerID(id))
		b.people.removeWhere(id, "", &control.RemoveReply{})
	}
	for _, entry := range told.GetDemoted() {
		b.acts.moderation.note(entry)
	}
	there := map[forward.PeerID]uint64{}
	for _, p := range told.GetYours() {
		b.people.takeInAudience(m, p)
		there[forward.PeerID(p.GetEntry().GetId())] = p.GetGeneration()
	}
	for id, p := range b.peers {
		generation, has := there[id]
		delete(there, id)
		switch {
		case has && p.expected:
			p.returns(m, generation)
		case has && p.place != m && generation > p.generation && p.isHere() && p.outbox == nil:
			p.place, p.generation = m, generation
		case has && p.place != m:
			b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Elsewhere{Elsewhere: &control.LinkElsewhere{Peer: string(id), Generation: max(p.generation, 1)}}})
		case !has && p.place == m:
			p.place = nil
			b.teller.detach(p)
		}
	}
	for id := range there {
		// The room has forgotten them; their signaling nodes ask for places again.
		b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Elsewhere{Elsewhere: &control.LinkElsewhere{Peer: string(id), Elsewhere: &control.Elsewhere{}}}})
	}
	b.people.counted()
}

// heedSaid does what a peer at a branch said for the whole room.
func (b *branches) heedSaid(p *peer, message *control.PeerMessage) {
	switch said := message.GetMessage().(type) {
	case *control.PeerMessage_Mute:
		b.acts.mute(p, said.Mute)
	case *control.PeerMessage_Say:
		b.acts.chat(p, said.Say)
	case *control.PeerMessage_Rename:
		b.acts.rename(p, said.Rename.GetName())
	case *control.PeerMessage_Hand:
		b.acts.hand(p, said.Hand.GetRaised())
	case *control.PeerMessage_React:
		b.acts.react(p, said.React.GetEmoji())
	default:
		// The rest concerns the branch alone.
	}
}

// enter answers a branch that asks for somebody. A newcomer's pin is confirmed first, which may wait for the store.
func (b *branches) enter(ctx context.Context, m *member, enter *control.LinkEnter) {
	a, refused := b.node.readAttach(&control.PeerMessage{
		Fence: enter.GetAttach().GetPin().GetFence(), Message: &control.PeerMessage_Attach{Attach: enter.GetAttach()},
	})
	go func() {
		if refused == nil && !b.knows(ctx, a) {
			if err := b.node.confirm(ctx, a); err != nil {
				refused = unconfirmed(err)
			}
			a.confirmed = true
		}
		b.loop.post(func() {
			answer := &control.LinkEntered{Id: enter.GetId()}
			if refused == nil {
				refused = b.enterNow(m, a, answer)
			}
			if refused != nil {
				answer.Refused = refused.event().GetRefused()
			}
			b.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Entered{Entered: answer}})
			if p := b.peers[forward.PeerID(answer.GetEntry().GetId())]; refused == nil && p != nil {
				b.acts.tellGranted(p)
			}
		})
	}()
}

// knows reports whether somebody who is to enter needs no confirmation of the pin.
func (b *branches) knows(ctx context.Context, a attachment) bool {
	known := false
	err := b.loop.do(ctx, func() { known = b.people.attachesUnconfirmed(a) })
	return err == nil && known
}

// enterNow gives a peer its place at a branch.
func (b *branches) enterNow(m *member, a attachment, answer *control.LinkEntered) *refusal {
	p, here := b.peers[forward.PeerID(a.entry.GetId())]
	known := here && !p.expected
	switch current := b.current.pin().Fence; {
	case a.pin.Fence.Less(current):
		return fenced(current)
	case !b.members.has(m):
		return elsewhere(nil)
	case b.acts.moderation.removed[forward.PeerID(a.entry.GetId())]:
		return removedRefusal()
	case a.request.GetOnlyIfHere() && !here:
		return notHere()
	case known && a.request.GetGeneration() <= p.generation:
		return refuse(control.Refusal_REFUSAL_STALE_GENERATION, "generation %d of this peer is attached, this is %d", p.generation, a.request.GetGeneration())
	case !known && !a.confirmed:
		return refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the peer has left meanwhile")
	case !known && !b.people.fits(a):
		return refuse(control.Refusal_REFUSAL_ROOM_FULL, "the room has %d people, no more fit", len(b.peers))
	}
	switch {
	case !known:
		p = b.people.welcome(a)
	case p.place == nil:
		b.acts.heed(p, a.entry)
	case p.place != m:
		b.members.release(p, a.request.GetGeneration())
		b.acts.heed(p, a.entry)
	default:
		b.acts.heed(p, a.entry)
	}
	if p.place == nil {
		b.people.letGo(p, m)
	}
	p.place, p.called, p.awayThere = m, false, false
	p.take(a.request)
	b.roll.noteAttached(p)
	b.people.expect(a.request.GetExpected())
	b.state.heed(a.request.GetSettings())
	b.people.counted()
	answer.Entry, answer.Seq = p.entry, b.roll.version.seq
	untold, err := control.EncodeRosterChanges(b.roll.changes.untold)
	if err != nil {
		return brokeRefusal()
	}
	answer.Changes = untold
	answer.Lines = p.chatFrom
	return nil
}
