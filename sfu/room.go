package sfu

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
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
	// parts are the batches that the media loop fills, one for each shard.
	parts []*egress.Batch
	news  *mediaNews
	book  *roster.Book
	// load belongs to the node, and says itself who may use which part of it.
	load *roomLoad

	// runID names the room as it was opened here, for signaling nodes; never 0.
	runID uint64
	// turn counts the connections so far.
	turn atomic.Uint32
	// current is written by the loop alone.
	current   atomic.Pointer[pin.Pin]
	peerCount atomic.Int64
	connected atomic.Int64

	// The loop owns the fields below.

	peers   peerMap
	version rosterVersion
	changes rosterChanges
	// left has those who left in the first grace time, so that nobody expects them back.
	left       map[forward.PeerID]bool
	moderation moderation
	lines      chatLog
	reactions  reactions
	speakers   speakerNews
	// lastHand is when the last hand was raised, in Unix milliseconds.
	lastHand int64
	// egress is what the room sends, and limited that pictures are held back, as its signaling nodes were last told.
	egress  *control.Egress
	limited bool
	arrival arrival
	// arrivals counts the peers so far.
	arrivals uint64
	// emptySince is zero while somebody is here.
	emptySince time.Time
	// endNow ends the loop, ending is the last event of every stream, and connections live for linger after the loop.
	endNow bool
	ending *control.PeerEvent
	linger time.Duration
}

// newRoom makes the room of an Attach. It needs Node.mu.
func newRoom(n *Node, a attachment, now time.Time) *room {
	people := n.cfg.Limits.PeersPerRoom
	r := &room{
		taskLoop: newTaskLoop(), id: a.room, node: n, runID: max(rand.Uint64(), 1), log: n.log.With("room", string(a.room)), news: newMediaNews(),
		book: n.rosters.Open(a.room, a.pin), load: newRoomLoad(n, a, now),
		peers: peerMap{}, left: map[forward.PeerID]bool{}, moderation: newModeration(), lines: newChatLog(people), reactions: newReactions(people),
		emptySince: now,
	}
	var batchers []forward.Batcher
	for range cores() {
		part := n.socket.NewBatch()
		r.parts, batchers = append(r.parts, part), append(batchers, part)
	}
	r.media = forward.NewRoom(forward.Config{OnSlots: r.news.slots, OnSpeakers: r.news.speak, OnStarved: r.starved, OnBroken: r.mediaBroke, Batchers: batchers, Panics: n.panics}, r.log)
	r.media.SetLevel(r.load.level)
	r.current.Store(&a.pin)
	return r
}

func (r *room) pin() pin.Pin { return *r.current.Load() }

// settleRoster ends the wait for the people of the former owner, once the store has answered for a grace time: while it was silent,
// nobody could ask it for the room and come back. It waits no longer than until giveUp, because a part of the store may stay away.
func (r *room) settleRoster(giveUp time.Time) {
	missing := r.node.cfg.Grace - r.node.owner.StoreSteadyFor()
	if missing > 0 && time.Now().Before(giveUp) {
		r.after(missing, func() { r.settleRoster(giveUp) })
		return
	}
	r.book.Settle()
}

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
	r.after(r.node.cfg.Grace, func() { r.settleRoster(giveUp) })
	r.loop(ctx)
	r.book.Leave()
	r.node.forget(r)
	close(r.done)
	for _, p := range r.peers {
		if p.outbox != nil {
			p.outbox.end(r.ending)
		}
	}
	r.outlive(ctx)
	for _, p := range r.peers {
		if p.connection != nil {
			r.node.closeSoon(p.connection.Close)
		}
	}
	endMedia()
	<-mediaDone
	r.log.Info("room closed", "fence", r.pin().Fence.String(), "packets_forwarded", r.media.Stats().PacketsForwarded)
}

func (r *room) loop(ctx context.Context) {
	for !r.endNow {
		select {
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
		r.ending = r.event(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: reason}}})
	}
}

// handOver ends the room for a higher pin of another boot.
func (r *room) handOver(higher pin.Pin, live bool) {
	r.post(func() {
		current := control.FenceProto(higher.Fence)
		r.ending = &control.PeerEvent{Fence: current, Event: &control.PeerEvent_Fenced{
			Fenced: &control.Fenced{Current: current, Pin: control.PinProto(higher), Live: live},
		}}
		r.linger = handOverTime
		if live {
			r.linger = liveHandOverTime
		}
		r.media.Freeze()
		r.end("outranked")
	})
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
	if r.pin().Fence.Less(higher.Fence) {
		r.log.Info("room adopts a higher pin of this node", "fence", r.pin().Fence.String(), "current", higher.Fence.String())
		// The roster comes first: a pin owner that sees the room under the higher pin relies on the roster's being written under it.
		r.book.Repin(higher)
		r.current.Store(&higher)
	}
}

// event adds the present fence to an event.
func (r *room) event(event *control.PeerEvent) *control.PeerEvent {
	event.Fence = control.FenceProto(r.pin().Fence)
	return event
}

// tellNews tells the peers what their slots show, what their paths carry, and who speaks.
func (r *room) tellNews() {
	peers, speakers, spoken := r.news.take()
	for id, news := range peers {
		p, ok := r.peers[id]
		if !ok || p.expected {
			continue
		}
		if table := r.media.Table(id); news.table && table != nil {
			r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Slots{Slots: &control.SlotTable{
				Slots: slotsFor(p, table), Lacks: lacksProto(r.media.Lacks(id)),
			}}})
		}
		if news.path && p.connection != nil {
			r.tellPath(p, p.connection.Path().Target())
		}
	}
	if spoken {
		r.speakers.now = speakers
		r.tellSpeakersSoon()
	}
}

// tellSpeakersSoon tells at once who speaks in a small room. A large room gathers the changes of a while.
func (r *room) tellSpeakersSoon() {
	if r.speakers.waiting {
		return
	}
	r.speakers.waiting = true
	if wait := r.speakers.due(len(r.peers), time.Now()); wait > 0 {
		r.after(wait, r.tellSpeakers)
	} else {
		r.tellSpeakers()
	}
}

func (r *room) tellSpeakers() {
	r.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: r.speakers.take(time.Now())}})
}

// tellPath tells a peer's signaling node what the path carries, if that has changed much.
func (r *room) tellPath(p *peer, bitsPerSecond uint64) {
	if !differs(bitsPerSecond, p.path) {
		return
	}
	p.path = bitsPerSecond
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Path{Path: &control.Path{BitsPerSecond: bitsPerSecond}}})
}

// send tells a peer's signaling node of an event.
func (r *room) send(p *peer, event *control.PeerEvent) { r.queue(p, r.event(event)) }

// sendAll tells everybody's signaling node of the same event.
func (r *room) sendAll(event *control.PeerEvent) {
	event = r.event(event)
	for _, p := range r.peers {
		r.queue(p, event)
	}
}

// queue is send for an event that has its fence, and that others may be reading already. A signaling node that does not read loses the peer.
func (r *room) queue(p *peer, event *control.PeerEvent) {
	if p.outbox == nil || p.outbox.send(event) {
		return
	}
	r.log.Warn("signaling node does not read a peer's events: stream ended", "peer", string(p.id), "events", outboxEvents)
	p.outbox.end(nil)
	r.detach(p)
}

// detach gives a peer without a signaling node the grace time.
func (r *room) detach(p *peer) {
	p.outbox = nil
	p.deadline = time.Now().Add(r.node.cfg.Grace)
	r.after(r.node.cfg.Grace, r.expire)
}

// expire forgets who was away for the grace time, and closes a room that was empty so long.
func (r *room) expire() {
	now := time.Now()
	for _, p := range r.peers {
		if p.outbox == nil && !now.Before(p.deadline) {
			r.remove(p, "did not come back")
		}
	}
	if r.emptySince.IsZero() {
		return
	}
	if rest := r.node.emptyGrace() - now.Sub(r.emptySince); rest > 0 {
		// When this task was posted the node was draining, and the grace time shorter.
		r.after(rest, r.expire)
		return
	}
	r.close("the room is empty")
}

// close ends the room for good, after the present task.
func (r *room) close(reason string) {
	r.book.Close()
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
		r.supersede(p)
		r.detach(p)
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
	r.node.closeSoon(p.connection.Close)
	p.connection, p.connected = nil, false
	r.count()
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: control.TransportState_TRANSPORT_STATE_FAILED}}})
}

// transportChanged takes the new state of a peer's connection, unless the connection has been replaced.
func (r *room) transportChanged(p *peer, c *connection.Connection, state control.TransportState) {
	if p.gone.Load() || p.connection != c {
		return
	}
	p.connected = state == control.TransportState_TRANSPORT_STATE_CONNECTED
	r.count()
	r.log.Debug("peer transport changed", "peer", string(p.id), "state", state.String())
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: state}}})
}

// tellLimited tells everybody whether pictures are held back. It returns false, without waiting, if the room is busy.
func (r *room) tellLimited(limited bool) bool {
	return r.tryPost(func() {
		r.limited = limited
		r.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Limited{Limited: &control.Limited{Limited: limited}}})
	})
}

// tellEgress tells everybody what the room sends. It returns false, without waiting, if the room is busy.
func (r *room) tellEgress(sent headroom.Egress) bool {
	message := control.EgressProto(sent)
	return r.tryPost(func() {
		r.egress = message
		r.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Egress{Egress: message}})
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

// The reasons for asking for a new offer, in the words of the clients' protocol.
const (
	reofferSilent     = "silent"
	reofferUnplaced   = "unplaced"
	reofferNoKeyframe = "no-keyframe"
	reofferCodec      = "codec"
)

const (
	// A publisher is asked so often and so many times in a row, because its camera may have stopped for a reason that no offer mends.
	// After reofferRest without a request the count begins anew.
	reofferEvery = 5 * time.Second
	maxReoffers  = 3
	reofferRest  = time.Minute
	// Right after DTLS was established, silence means nothing.
	connectedFor = 2 * time.Second
)

// starved asks the publisher of a missing picture for a new offer. It is forward's OnStarved and must not block.
func (r *room) starved(s forward.Starved) {
	// A busy room is told again in 5 s.
	r.tryPost(func() { r.reoffer(s, time.Now()) })
}

// reoffer asks the publisher for a new offer, if it is connected and had been sending the source.
func (r *room) reoffer(s forward.Starved, now time.Time) {
	p, ok := r.peers[s.Publisher]
	if !ok || p.connection == nil || !p.connected || !p.canPublish || !sources.MayPublish(p.sources, s.Source) {
		return
	}
	mids, upAt, sent := p.connection.Sending(s.Source)
	if len(mids) == 0 || now.Sub(upAt) < connectedFor || !sent && !s.Heard {
		return
	}
	if now.Sub(p.reofferedAt) >= reofferRest {
		p.reoffers = 0
	}
	if p.reoffers == maxReoffers || now.Sub(p.reofferedAt) < reofferEvery {
		return
	}
	p.reoffers++
	p.reofferedAt = now
	reason := reofferSilent
	switch {
	case s.LacksCodec:
		reason = reofferCodec
	case s.Heard:
		reason = reofferNoKeyframe
	case len(p.connection.Unplaced()) > 0:
		reason = reofferUnplaced
	}
	r.log.Warn("publisher asked for a new offer", "peer", string(p.id), "source", string(s.Source), "reason", reason, "mids", mids)
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Mids: mids, Reason: reason}}})
}

// count updates what other goroutines read of the number of people.
func (r *room) count() {
	r.peerCount.Store(int64(r.peers.present()))
	r.connected.Store(int64(r.peers.connected()))
}

// note has the store know who is in the room. A peer is in the room also in the grace time, and while it is expected.
func (r *room) note(p *peer) {
	if !p.gone.Load() {
		r.book.Put(roster.Peer{ID: string(p.id), Identity: p.entry.GetIdentity(), Name: p.entry.GetName(), Hidden: p.entry.GetHidden(), Shows: p.shows()})
		return
	}
	lastSeen := time.Now()
	if !p.deadline.IsZero() {
		lastSeen = p.deadline.Add(-r.node.cfg.Grace)
	}
	r.book.Drop(string(p.id), lastSeen)
}

// held describes the room for an operator. The map unplaced, unless it is nil, gets the streams that belong to no track.
// held tells operators of the peer, and with a map for what is unplaced also of its media. It needs the loop.
func (p *peer) held(unplaced map[string][]*control.Stream) *control.HeldPeer {
	held := &control.HeldPeer{Id: string(p.id), Identity: p.entry.GetIdentity(), Attached: p.outbox != nil, Connected: p.connected, Offers: p.offers}
	if p.outbox != nil {
		held.Signaling = p.signaling
	}
	if unplaced == nil || p.connection == nil {
		return held
	}
	unplaced[held.GetId()] = p.connection.Unplaced()
	reported := p.connection.Reported()
	held.Transport = p.connection.Transport()
	held.RoundTripMs, held.LostPermille = uint32(reported.RoundTrip.Milliseconds()), uint32(reported.Lost*1000)
	return held
}

func (r *room) held(ctx context.Context, brief bool, unplaced map[string][]*control.Stream) (*control.HeldRoom, error) {
	stats := r.media.Stats()
	// The kernel's refusals could be anybody's: each room counts them.
	refused := r.node.socket.Stats().Refused - r.load.refusedBefore
	answer := &control.HeldRoom{
		Room: string(r.id), PacketsForwarded: stats.PacketsForwarded, PacketsDropped: stats.Drops.Total() + refused,
		PacketsLate: stats.Drops.Late,
	}
	err := r.do(ctx, func() {
		answer.Pin, answer.Size = control.PinProto(r.pin()), r.peers.size()
		answer.Size.Expected, answer.Size.Egress = uint32(min(max(r.load.people, 0), headroom.MaxPeople)), r.egress
		for _, p := range r.peers {
			if p.expected {
				continue
			}
			answer.People++
			if p.connected {
				answer.Connected++
			}
			if !brief {
				answer.Peers = append(answer.Peers, p.held(unplaced))
			}
		}
	})
	return answer, err
}
