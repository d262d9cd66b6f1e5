package sfu

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/data"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

var errStranger = errors.New("the peer is new to the room and its pin was not confirmed")

const (
	// So many consecutive connections share a shard. A small room has one.
	shardPeers = 32
	// The connections of a fenced room live on for so long while its clients move.
	handOverTime = 5 * time.Second
	// In a live move clients connect to the new node first, which takes longer.
	liveHandOverTime = 15 * time.Second
	// lingerLook is how often a fenced room checks whether everybody has left.
	lingerLook = 250 * time.Millisecond
	// People of a former owner are waited for at most this long while the store is silent.
	longestSilence = 10 * time.Minute
)

// room is an open room: a task loop, and the media plane with its own. Other goroutines post tasks, or read what is atomic.
type room struct {
	taskLoop

	id    ring.RoomID
	node  *Node
	log   *slog.Logger
	media *forward.Room
	data  *data.Room
	// parts are the batches that the media loop fills, one for each shard.
	parts []*egress.Batch
	news  *mediaNews
	// load belongs to the node, and says itself who may use which part of it.
	load *roomLoad

	// turn counts the connections so far.
	turn atomic.Uint32
	// standby is the node that stands by for the newest connection, nil before the first.
	standby   atomic.Pointer[Neighbour]
	current   heldPin
	peerCount atomic.Int64
	connected atomic.Int64

	// The loop owns the fields below.

	// The values from here to branch own the parts of the room's state. Each is given those above it that it uses, and none knows the room:
	// branch has it do five things, and people and teller post its expire.
	peers     peerMap
	members   *members
	teller    *teller
	messages  *messages
	reoffers  *reoffers
	roll      *roll
	state     *roomState
	acts      *acts
	people    *people
	spreading *spreading
	branches  *branches
	branch    *branchSide

	speakers speakerNews
	// egress is what the room sends, and limited that pictures are held back, as its signaling nodes were last told.
	egress  *control.Egress
	limited bool
	// toldStandby is what everybody was last told, nil before.
	toldStandby *control.RoomStandby
	// endNow ends the loop, ending is the last event of every stream, and connections live for linger after the loop.
	endNow bool
	ending *control.PeerEvent
	linger time.Duration
}

// newRoom makes the room of an Attach. It needs Node.mu.
func newRoom(n *Node, a attachment, book *roster.Book, now time.Time) *room {
	r := &room{
		taskLoop: newTaskLoop(), id: a.room, node: n, log: n.log.With("room", string(a.room)), news: newMediaNews(),
		load: newRoomLoad(n, a, now), peers: peerMap{},
	}
	r.current.Store(&a.pin)
	var batchers []forward.Batcher
	for range cores() {
		part := n.socket.NewBatch()
		r.parts, batchers = append(r.parts, part), append(batchers, part)
	}
	r.media = forward.NewRoom(forward.Config{OnSlots: r.news.slots, OnSpeakers: r.news.speak, OnStarved: r.starved, OnBroken: r.mediaBroke, Batchers: batchers, Panics: n.panics}, r.log)
	r.assemble(n, book, now)
	r.media.SetLevel(r.load.level)
	r.roll.book.Follow(r.news.ring)
	return r
}

// assemble makes the values that the room consists of.
func (r *room) assemble(n *Node, book *roster.Book, now time.Time) {
	most, grace, current := n.cfg.Limits.PeersPerRoom, n.cfg.Grace, &r.current
	r.members = newMembers(current, r.taskLoop)
	r.teller = &teller{current: current, members: r.members, peers: r.peers, loop: r.taskLoop, grace: grace, log: r.log, expire: r.expire}
	r.messages = &messages{members: r.members, loop: r.taskLoop, tally: &n.messages}
	r.data = data.NewRoom(&n.messages, r.messages.spread)
	r.messages.data = r.data
	r.reoffers = &reoffers{members: r.members, teller: r.teller, peers: r.peers, log: r.log}
	r.roll = &roll{
		current: current, members: r.members, teller: r.teller, peers: r.peers, loop: r.taskLoop, log: r.log, grace: grace,
		listed: n.cfg.Limits.ListedPerRoom, steady: n.owner.StoreSteadyFor, run: max(rand.Uint64(), 1), book: book, began: now,
	}
	r.state = &roomState{members: r.members, teller: r.teller, roll: r.roll, log: r.log}
	r.acts = &acts{
		teller: r.teller, roll: r.roll, peers: r.peers, media: r.media, loop: r.taskLoop, log: r.log, grace: grace,
		lines: newChatLog(most), reactions: newReactions(most), moderation: newModeration(),
	}
	r.people = &people{
		current: current, members: r.members, teller: r.teller, roll: r.roll, acts: r.acts, media: r.media, data: r.data, loop: r.taskLoop,
		log: r.log, node: n, id: r.id, expire: r.expire, counted: r.count, peers: r.peers, left: map[forward.PeerID]bool{}, emptySince: now,
	}
	r.spreading = &spreading{
		node: n, id: r.id, current: current, members: r.members, teller: r.teller, peers: r.peers, load: r.load, connected: &r.connected,
		loop: r.taskLoop, log: r.log, decides: newSpread(most),
	}
	r.branches = &branches{
		node: n, id: r.id, current: current, members: r.members, teller: r.teller, roll: r.roll, acts: r.acts, people: r.people,
		spreading: r.spreading, messages: r.messages, reoffers: r.reoffers, state: r.state, peers: r.peers, media: r.media, batch: r.parts[0],
		loop: r.taskLoop, log: r.log,
	}
	r.branch = &branchSide{
		room: r, node: n, id: r.id, current: current, members: r.members, teller: r.teller, roll: r.roll, acts: r.acts, people: r.people,
		messages: r.messages, reoffers: r.reoffers, state: r.state, peers: r.peers, media: r.media, loop: r.taskLoop, log: r.log,
		entering: map[uint64]*entrant{},
	}
}

func (r *room) pin() pin.Pin { return r.current.pin() }

// run serves the room until its loop ends, and after it until the clients of a room that was handed over have moved.
func (r *room) run(ctx context.Context) {
	mediaCtx, endMedia := context.WithCancel(ctx)
	mediaDone := make(chan struct{})
	go func() {
		defer close(mediaDone)
		// Run returns nil.
		_ = r.media.Run(mediaCtx)
	}()
	r.after(r.node.cfg.Grace, r.expire)
	giveUp := time.Now().Add(longestSilence)
	r.after(r.node.cfg.Grace, func() { r.roll.settle(giveUp) })
	links, endLinks := context.WithCancel(ctx)
	defer endLinks()
	var linking sync.WaitGroup
	r.loop(ctx, func(m *member) { linking.Go(func() { r.branches.keepLink(links, m) }) })
	r.members.finish(ctx, &linking)
	r.roll.book.Leave()
	r.node.forget(r)
	close(r.done)
	endLinks()
	// A link may have waited for the loop until now.
	linking.Wait()
	for _, p := range r.peers {
		if p.outbox != nil {
			p.outbox.end(r.ending)
		}
	}
	r.outlive(ctx)
	for _, p := range r.peers {
		for _, c := range p.takeConnections() {
			r.node.closeSoon(c.Close)
		}
	}
	for _, c := range r.people.lingering {
		r.node.closeSoon(c.Close)
	}
	endMedia()
	<-mediaDone
	r.log.Info("room closed", "fence", r.pin().Fence.String(), "packets_forwarded", r.media.Stats().PacketsForwarded)
}

func (r *room) loop(ctx context.Context, link func(*member)) {
	for !r.endNow {
		select {
		case m := <-r.members.appointed:
			link(m)
		case task := <-r.tasks:
			r.catchTask(task)
		case <-r.news.wake:
			r.catchTask(r.tellNews)
		case <-ctx.Done():
			r.end("the node is stopping")
		}
	}
}

// end closes the room after the present task.
func (r *room) end(reason string) {
	r.endNow = true
	if r.ending == nil {
		r.ending = r.current.stamp(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: reason}}})
	}
}

// handOver ends the room for a higher pin of another boot.
func (r *room) handOver(higher pin.Pin, live bool) {
	r.post(func() { r.handOverNow(higher, live) })
}

func (r *room) handOverNow(higher pin.Pin, live bool) {
	current := control.FenceProto(higher.Fence)
	r.ending = &control.PeerEvent{Fence: current, Event: &control.PeerEvent_Fenced{
		Fenced: &control.Fenced{Current: current, Pin: control.PinProto(higher), Live: live},
	}}
	r.members.tellBranches(r.ending)
	r.linger = handOverTime
	if live {
		r.linger = liveHandOverTime
	}
	r.media.Freeze()
	r.end("outranked")
}

// outlive forwards until the clients have closed their connections.
func (r *room) outlive(ctx context.Context) {
	until := time.Now().Add(r.linger)
	look := time.NewTicker(lingerLook)
	defer look.Stop()
	for time.Now().Before(until) && r.peers.mediaInUse() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// adopt goes on under a higher pin that names this boot.
func (r *room) adopt(higher pin.Pin) {
	if r.members.owner == nil && r.pin().Fence.Less(higher.Fence) {
		r.log.Info("room adopts a higher pin of this node", "fence", r.pin().Fence.String(), "current", higher.Fence.String())
		// The roster comes first: a pin owner that sees the room under the higher pin relies on the roster's being written under it.
		r.roll.book.Repin(higher)
		r.current.Store(&higher)
		// The message has the new fence.
		r.members.tellBranches(nil)
	}
}

// tellNews tells the peers what their slots show, what their paths carry, and who speaks.
func (r *room) tellNews() {
	r.state.heed(r.roll.book.Settings())
	peers, speakers, spoken := r.news.take()
	for id, news := range peers {
		p, ok := r.peers[id]
		if !ok || !p.isHere() {
			continue
		}
		if table := r.media.Table(id); news.table && table != nil {
			r.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Slots{Slots: &control.SlotTable{
				Slots: slotsFor(p, table), Lacks: lacksProto(r.media.Lacks(id)),
			}}})
		}
		if news.path && p.connection != nil {
			r.tellPath(p, p.connection.Path().Target())
		}
		if news.senders && p.connection != nil {
			r.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Senders{Senders: &control.Senders{Senders: p.connection.Senders()}}})
		}
		if news.rests {
			r.teller.rests(p)
		}
	}
	if spoken {
		r.speakers.now = speakers
		r.tellSpeakersSoon()
	}
}

// tellPath tells a peer's signaling node what the path carries, if that has changed much.
func (r *room) tellPath(p *peer, bitsPerSecond uint64) {
	if !differs(bitsPerSecond, p.path) {
		return
	}
	p.path = bitsPerSecond
	r.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Path{Path: &control.Path{BitsPerSecond: bitsPerSecond}}})
}

// expire forgets who was away for the grace time, and closes a room that was empty so long.
func (r *room) expire() {
	now := time.Now()
	for _, p := range r.peers {
		if p.place == nil && p.outbox == nil && !now.Before(p.deadline) {
			r.people.remove(p, "did not come back")
		}
	}
	r.roll.fill()
	if r.people.emptySince.IsZero() || r.members.owner.up() {
		return
	}
	if rest := r.node.emptyGrace() - now.Sub(r.people.emptySince); rest > 0 {
		// When this task was posted the node was draining, and the grace time shorter.
		r.after(rest, r.expire)
		return
	}
	r.close("the room is empty")
}

// close ends the room for good, after the present task.
func (r *room) close(reason string) {
	r.roll.book.Close()
	if r.members.owner != nil {
		r.end(reason)
		return
	}
	r.node.cfg.Events.Record(events.Event{Kind: events.RoomClosed, Room: r.id, Node: r.node.cfg.Node, About: r.pin().Fence.String()})
	r.end(reason)
}

// catchTask runs a task, which may panic without harm to the room.
func (r *room) catchTask(task func()) {
	r.node.panics.Catch(r.log, "a task broke the room's loop: it is given up", task)
}

// abandon undoes an Attach that panicked. It runs on the loop.
func (r *room) abandon(a attachment) {
	if p, here := r.peers[forward.PeerID(a.entry.GetId())]; here && !p.expected {
		r.teller.supersede(p)
		r.teller.detach(p)
	}
}

// mediaBroke hears that a peer's media made forward panic. It is forward's OnBroken and must not block.
func (r *room) mediaBroke(id forward.PeerID) {
	// In a busy room nobody is told, but the media of the peer has ended anyway.
	r.tryPost(func() { r.endConnection(id) })
}

// endConnection ends the connection of a peer whose packets made the media loop panic, and strikes the peer.
func (r *room) endConnection(id forward.PeerID) {
	p, here := r.peers[id]
	if !here || p.connection == nil {
		return
	}
	r.node.panics.Strike(strikeName(p.entry))
	for _, c := range p.takeConnections() {
		r.node.closeSoon(c.Close)
	}
	r.count()
	r.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: control.TransportState_TRANSPORT_STATE_FAILED}}})
}

// transportChanged takes the new state of a peer's connection, unless the connection has been replaced.
func (r *room) transportChanged(p *peer, c *connection.Connection, state control.TransportState) {
	if p.gone.Load() || p.connection != c {
		return
	}
	p.connected = state == control.TransportState_TRANSPORT_STATE_CONNECTED
	r.count()
	r.log.Debug("peer transport changed", "peer", string(p.id), "state", state.String())
	r.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: state}}})
}

// tellLimited tells everybody whether pictures are held back. It returns false, without waiting, if the room is busy.
func (r *room) tellLimited(limited bool) bool {
	return r.tryPost(func() {
		r.limited = limited
		r.teller.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Limited{Limited: &control.Limited{Limited: limited}}})
	})
}

// tellEgress tells everybody what the room sends. It returns false, without waiting, if the room is busy.
func (r *room) tellEgress(sent headroom.Egress) bool {
	message := control.EgressProto(sent)
	return r.tryPost(func() {
		r.egress = message
		r.teller.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Egress{Egress: message}})
	})
}

// maxStatesTold is how many slots and tracks an answer has at most. Each has some 200 bytes.
const maxStatesTold = 4000

// tellMedia adds at most left states, and returns how many more may be added.
func tellMedia(states map[forward.PeerID]forward.PeerState, peers []*control.HeldPeer, unplaced map[string][]*control.Stream, left int) int {
	now := time.Now()
	for _, p := range peers {
		state := states[forward.PeerID(p.GetId())]
		size := len(state.Slots) + len(state.Layers) + len(unplaced[p.GetId()])
		if size > left {
			continue
		}
		left -= size
		p.Media = mediaProto(state, now)
		p.Media.Unplaced = unplaced[p.GetId()]
	}
	return left
}

func mediaProto(state forward.PeerState, now time.Time) *control.MediaState {
	m := &control.MediaState{EstimateBitsPerSecond: state.BudgetBitsPerSecond, ShortBitsPerSecond: state.ShortBitsPerSecond}
	for _, s := range state.Slots {
		entry := slotsProto([]forward.Entry{s.Entry})[0]
		m.Slots = append(m.Slots, &control.SlotState{
			Mid: entry.GetMid(), Kind: entry.GetKind(), Peer: entry.GetPeer(), Source: entry.GetSource(),
			Ready: s.Ready, Paused: s.Paused, Waits: s.Waits, Target: s.Target, Sent: s.Sent, PacketsIn: s.PacketsIn, PacketsOut: s.PacketsOut,
			KeyframesAsked: s.KeyframesAsked, AskedMsAgo: age(s.AskedAt, now), KeyframesSent: s.KeyframesSent, SentMsAgo: age(s.SentAt, now),
		})
	}
	for _, l := range state.Layers {
		m.Tracks = append(m.Tracks, &control.TrackState{
			Source: sources.Proto(l.Source), Rid: l.RID, Ssrc: l.SSRC, Muted: l.Muted, PacketsIn: l.PacketsIn, HeardMsAgo: age(l.HeardAt, now),
			BitsPerSecond: l.BitsPerSecond, Height: uint32(l.Height),
			KeyframesAsked: l.KeyframesAsked, AskedMsAgo: age(l.AskedAt, now), KeyframesSeen: l.KeyframesSeen, SeenMsAgo: age(l.SeenAt, now),
		})
	}
	return m
}

// age is in milliseconds, -1 for never.
func age(at, now time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return now.Sub(at).Milliseconds()
}

// starved asks the publisher of a missing picture for a new offer. It is forward's OnStarved and must not block.
func (r *room) starved(s forward.Starved) {
	// A busy room is told again in 5 s.
	r.tryPost(func() { r.reoffers.ask(s, time.Now()) })
}

// held tells operators of the peer, and with a map for what is unplaced also of its media. It needs the loop.
func (p *peer) held(entries bool, unplaced map[string][]*control.Stream) *control.HeldPeer {
	held := &control.HeldPeer{Id: string(p.id), Identity: p.entry.GetIdentity(), Attached: p.outbox != nil, Connected: p.connected, Offers: p.offers}
	if p.outbox != nil {
		held.Signaling = p.signaling
	}
	if entries {
		held.Entry, held.JoinedUnixMs, held.Shows = p.entry, p.cameAt.UnixMilli(), uint32(p.shows()&^roster.SourcesKnown)
		held.CanSubscribe, held.Permission, held.Published = p.canSubscribe, p.permission(), p.published()
	}
	if unplaced == nil || p.connection == nil {
		return held
	}
	unplaced[held.GetId()] = p.sending().Unplaced()
	reported := p.connection.Reported()
	held.Transport = p.connection.Transport()
	held.RoundTripMs, held.LostPermille = uint32(reported.RoundTrip.Milliseconds()), uint32(reported.Lost*1000)
	return held
}

// count updates what other goroutines read of the number of people.
func (r *room) count() {
	r.peerCount.Store(int64(r.peers.here()))
	r.connected.Store(int64(r.peers.connected()))
	r.spreading.lookSoon()
	if r.node.standby != nil {
		// The standby cannot go on with a new connection yet, or the last one of that kind has gone.
		r.tellStandby()
	}
}

// held describes the room for an operator. The map unplaced, unless it is nil, gets the streams that belong to no track.
func (r *room) held(ctx context.Context, asked *control.RoomsRequest, unplaced map[string][]*control.Stream) (*control.HeldRoom, error) {
	stats := r.media.Stats()
	// The kernel's refusals could be anybody's: each room counts them.
	refused := r.node.socket.Stats().Refused - r.load.refusedBefore
	answer := &control.HeldRoom{
		Room: string(r.id), PacketsForwarded: stats.PacketsForwarded, PacketsDropped: stats.Drops.Total() + refused,
		PacketsLate: stats.Drops.Late, OpenedUnixMs: r.load.opened.UnixMilli(),
	}
	err := r.do(ctx, func() {
		answer.Branches, answer.Fill = r.spreading.told()
		answer.Changes, answer.Standby = r.spreading.changes(), r.standbyProto()
		if r.members.owner != nil {
			answer.Owner = r.members.owner.place.GetNode()
		}
		answer.Pin, answer.Size, answer.RoomState = control.PinProto(r.pin()), r.peers.size(), r.state.proto()
		answer.Size.Expected, answer.Size.Egress = uint32(min(max(r.load.people, 0), headroom.MaxPeople)), r.egress
		for _, p := range r.peers {
			if !p.isHere() {
				continue
			}
			answer.People++
			if p.connected {
				answer.Connected++
			}
			if p.shows()&^roster.SourcesKnown != 0 {
				answer.Publishers++
			}
			if !asked.GetBrief() {
				answer.Peers = append(answer.Peers, p.held(asked.GetEntries(), unplaced))
			}
		}
	})
	return answer, err
}
