package sfu

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

var (
	errRoomClosed = errors.New("the room is closed")
	errTaskBroke  = errors.New("the room's handling of it broke")
	errStranger   = errors.New("the peer is new to the room and its pin was not confirmed")
)

const (
	taskQueue = 64
	// Consecutive connections share a shard: small rooms have one.
	shardPeers = 32
	// Per peer: speakers change often, and go to everybody.
	speakersPause = 4 * time.Millisecond
	// A fenced room's connections live on while clients move.
	handOverTime = 5 * time.Second
	// In a live move: clients connect to the new node first.
	liveHandOverTime = 15 * time.Second
	// How often a fenced room looks whether everybody left.
	lingerLook = 250 * time.Millisecond
	// People of a former owner are waited for at most this long while the store is silent.
	longestSilence = 10 * time.Minute
)

// room is an open room: a task loop, and the media plane with its own.
type room struct {
	id    ring.RoomID
	node  *Node
	log   *slog.Logger
	media *forward.Room
	parts []*egress.Batch // the media loop's
	turn  atomic.Uint32   // connections so far
	news  *mediaNews
	book  *roster.Book
	tasks chan func()
	done  chan struct{}

	opened    time.Time
	cost      headroom.Egress // reserved
	least     headroom.Egress // at the lowest layers
	people    int             // expected
	comes     float64         // see newcomer
	chargedIn uint64          // first load report with the room
	// refusedBefore is the kernel's count when the room opened.
	refusedBefore uint64

	current   atomic.Pointer[pin.Pin] // written by the loop
	peerCount atomic.Int64
	connected atomic.Int64

	meter    meter           // of Node.measure
	toldAt   time.Time       // when egress was last told; of Node.measure
	told     headroom.Egress // of Node.measure
	measured headroom.Egress // guarded by Node.mu
	floor    headroom.Egress // at the lowest layers; guarded by Node.mu
	covered  int             // connected all the while; guarded by Node.mu

	limit limit // of Node.share

	// The loop owns the fields below.
	seq       uint64
	digest    uint64 // of the roster at digestSeq; 0: none
	digestSeq uint64
	egress    *control.Egress
	limited   bool
	chatSeq   uint64
	said      []said // the newest last

	speakers     []forward.Speaker
	speakersTold time.Time
	speakersWait bool

	chatters   *connlimit.KeyedLimiter
	reactors   *connlimit.KeyedLimiter
	reactions  []*control.Reaction
	reactedAt  time.Time
	lastHand   int64 // Unix milliseconds
	arrival    arrival
	arrivals   uint64
	peers      map[forward.PeerID]*peer
	left       map[forward.PeerID]bool  // in the first grace time: not expected back
	removed    map[forward.PeerID]bool  // by an operator; at most maxRemoved
	demoted    map[forward.PeerID]int64 // when the grant was taken back, in Unix milliseconds: earlier words do not count; at most maxRemoved
	emptySince time.Time                // zero: somebody is here
	ending     *control.PeerEvent
	endNow     bool
	linger     time.Duration // of connections after the loop
}

// newRoom needs Node.mu.
func newRoom(n *Node, a attachment, now time.Time) *room {
	r := &room{
		id: a.room, node: n, log: n.log.With("room", string(a.room)), news: newMediaNews(),
		book:  n.rosters.Open(a.room, a.pin),
		tasks: make(chan func(), taskQueue), done: make(chan struct{}),
		opened: now, cost: a.cost(), least: a.least(), people: a.people(),
		chatters: connlimit.NewKeyedLimiter(chatPerSecond, chatBurst, n.cfg.Limits.PeersPerRoom),
		reactors: connlimit.NewKeyedLimiter(reactPerSecond, reactBurst, n.cfg.Limits.PeersPerRoom),
		peers:    map[forward.PeerID]*peer{}, left: map[forward.PeerID]bool{}, removed: map[forward.PeerID]bool{}, demoted: map[forward.PeerID]int64{}, emptySince: now,
	}
	if a.request.GetUnreserved() {
		r.cost, r.least = headroom.Egress{}, headroom.Egress{}
	}
	r.refusedBefore = n.socket.Stats().Refused
	var batchers []forward.Batcher
	for range cores() {
		part := n.socket.NewBatch()
		r.parts, batchers = append(r.parts, part), append(batchers, part)
	}
	r.media = forward.NewRoom(forward.Config{OnSlots: r.news.slots, OnSpeakers: r.news.speak, OnStarved: r.starved, OnBroken: r.mediaBroke, Batchers: batchers, Panics: n.panics}, r.log)
	var level forward.Level
	level, r.comes = n.newcomer(a, now)
	r.media.SetLevel(level)
	r.current.Store(&a.pin)
	return r
}

func (r *room) pin() pin.Pin { return *r.current.Load() }

// do waits until a task has run on the loop. Its error: the task never will, or errTaskBroke: it panicked.
func (r *room) do(ctx context.Context, task func()) error {
	ran := make(chan struct{})
	err := errTaskBroke
	select {
	case r.tasks <- func() {
		defer close(ran)
		task()
		err = nil
	}:
	case <-r.done:
		return errRoomClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	// Once queued it may be running, with the caller's variables.
	select {
	case <-ran:
		return err
	case <-r.done:
		select {
		case <-ran:
			return err
		default:
			return errRoomClosed
		}
	}
}

// post does not wait for the task to run.
func (r *room) post(task func()) {
	select {
	case r.tasks <- task:
	case <-r.done:
	}
}

func (r *room) after(delay time.Duration, task func()) {
	time.AfterFunc(delay, func() { r.post(task) })
}

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

func (r *room) run(ctx context.Context) {
	mediaCtx, endMedia := context.WithCancel(ctx)
	mediaDone := make(chan struct{})
	go func() {
		defer close(mediaDone)
		_ = r.media.Run(mediaCtx) // it returns nil
	}()
	r.after(r.node.cfg.Grace, r.expire)
	giveUp := time.Now().Add(longestSilence)
	r.after(r.node.cfg.Grace, func() { r.settleRoster(giveUp) })
	r.loop(ctx)
	r.book.Leave()
	r.node.forget(r)
	close(r.done)
	r.endStreams()
	r.outlive(ctx)
	for _, p := range r.peers {
		if p.connection != nil {
			r.node.closeSoon(p.connection.close)
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
			r.survive(task)
		case <-r.news.wake:
			r.survive(r.tellNews)
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

// endStreams runs after the loop.
func (r *room) endStreams() {
	for _, p := range r.peers {
		if p.outbox != nil {
			p.outbox.end(r.ending)
		}
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
	for time.Now().Before(until) && r.inUse() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *room) inUse() bool {
	for _, p := range r.peers {
		if p.mediaLives() && !p.connection.conn.Left() {
			return true
		}
	}
	return false
}

// adopt takes a higher pin of this boot.
func (r *room) adopt(higher pin.Pin) {
	r.post(func() { r.adoptNow(higher) })
}

func (r *room) adoptNow(higher pin.Pin) {
	if r.pin().Fence.Less(higher.Fence) {
		r.log.Info("room adopts a higher pin of this node", "fence", r.pin().Fence.String(), "current", higher.Fence.String())
		// The roster comes first: a pin owner that sees the room under the higher pin relies on the roster's being written under it.
		r.book.Repin(higher)
		r.current.Store(&higher)
	}
}

// event adds the present fence.
func (r *room) event(event *control.PeerEvent) *control.PeerEvent {
	event.Fence = control.FenceProto(r.pin().Fence)
	return event
}

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
			r.tellPath(p, p.connection.path.Target())
		}
	}
	if spoken {
		r.speakers = speakers
		r.tellSpeakersSoon()
	}
}

// tellSpeakersSoon waits in a large room.
func (r *room) tellSpeakersSoon() {
	if r.speakersWait {
		return
	}
	r.speakersWait = true
	pause := time.Duration(len(r.peers)) * speakersPause
	if wait := pause - time.Since(r.speakersTold); wait > 0 {
		r.after(wait, r.tellSpeakers)
	} else {
		r.tellSpeakers()
	}
}

func (r *room) tellSpeakers() {
	r.speakersWait, r.speakersTold = false, time.Now()
	message := &control.Speakers{}
	for _, s := range r.speakers {
		message.Speakers = append(message.Speakers, &control.Speaker{Peer: string(s.Peer), Level: float32(s.Level)})
	}
	for _, p := range r.peers {
		r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: message}})
	}
}

func (r *room) tellPath(p *peer, bitsPerSecond uint64) {
	if !differs(bitsPerSecond, p.path) {
		return
	}
	p.path = bitsPerSecond
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Path{Path: &control.Path{BitsPerSecond: bitsPerSecond}}})
}

func (r *room) send(p *peer, event *control.PeerEvent) {
	if p.outbox == nil || p.outbox.send(r.event(event)) {
		return
	}
	r.log.Warn("signaling node does not read a peer's events: stream ended", "peer", string(p.id), "events", outboxEvents)
	p.outbox.end(nil)
	r.detach(p)
}

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
		r.after(rest, r.expire) // the grace time was shorter while the node drained
		return
	}
	r.book.Close()
	r.end("the room is empty")
}

func (r *room) survive(task func()) {
	r.node.panics.Survives(r.log, "a task broke the room's loop: it is given up", task)
}

// abandon undoes an Attach that panicked. It runs on the loop.
func (r *room) abandon(a attachment) {
	if p, here := r.peers[forward.PeerID(a.entry.GetId())]; here && !p.expected {
		r.supersede(p)
		r.detach(p)
	}
}

// mediaBroke is forward's OnBroken and must not block.
func (r *room) mediaBroke(id forward.PeerID) {
	select {
	case r.tasks <- func() { r.endConnection(id) }:
	default: // busy; the media is dropped already
	}
}

func (r *room) endConnection(id forward.PeerID) {
	p, here := r.peers[id]
	if !here || p.connection == nil {
		return
	}
	r.node.panics.Strike(strikeName(p.entry))
	r.node.closeSoon(p.connection.close)
	p.connection, p.connected = nil, false
	r.count()
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: control.TransportState_TRANSPORT_STATE_FAILED}}})
}

// transportChanged ignores replaced connections.
func (r *room) transportChanged(p *peer, c *connection, state control.TransportState) {
	if p.gone.Load() || p.connection != c {
		return
	}
	p.connected = state == control.TransportState_TRANSPORT_STATE_CONNECTED
	r.count()
	r.log.Debug("peer transport changed", "peer", string(p.id), "state", state.String())
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: state}}})
}

// tellLimited tells lasting changes, without blocking.
func (r *room) tellLimited(d *forward.Demand, now time.Time) {
	l := &r.limit
	switch all := d.UpTo(r.media.Level()) == d.UpTo(forward.AllLevels); {
	case all:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	}
	limited := !l.since.IsZero() && (l.told || now.Sub(l.since) >= limitedToldAfter)
	if limited == l.told {
		return
	}
	select {
	case r.tasks <- func() {
		r.limited = limited
		for _, p := range r.peers {
			r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Limited{Limited: &control.Limited{Limited: limited}}})
		}
	}:
		l.told = limited
	default: // at the next call
	}
}

// Longer than a move's keyframes.
const limitedToldAfter = 2 * time.Second

// tellEgress skips a busy room. Only Node.measure calls it.
func (r *room) tellEgress(sent headroom.Egress, covered int, now time.Time) {
	people, told := int(r.peerCount.Load()), !r.toldAt.IsZero()
	settled := people > 0 && covered >= people || now.Sub(r.opened) >= egressSettles
	if !settled || told && now.Sub(r.toldAt) < egressToldEvery || told && !differ(sent, r.told) {
		return
	}
	message := control.EgressProto(sent)
	select {
	case r.tasks <- func() {
		r.egress = message
		for _, p := range r.peers {
			r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Egress{Egress: message}})
		}
	}:
		r.toldAt, r.told = now, sent
	default:
	}
}

// Slots and tracks in an answer, some 200 bytes each.
const maxStatesTold = 4000

// tellMedia adds at most left states, and returns how many more may be added.
func (r *room) tellMedia(peers []*control.HeldPeer, unplaced map[string][]*control.Stream, left int) int {
	states := r.media.States()
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
			Source: sourceProto(l.Source), Rid: l.RID, Ssrc: l.SSRC, Muted: l.Muted, PacketsIn: l.PacketsIn, HeardMsAgo: age(l.HeardAt, now),
			BitsPerSecond: l.BitsPerSecond, Height: uint32(l.Height),
			KeyframesAsked: l.KeyframesAsked, AskedMsAgo: age(l.AskedAt, now), KeyframesSeen: l.KeyframesSeen, SeenMsAgo: age(l.SeenAt, now),
		})
	}
	return m
}

// -1 for never
func age(at, now time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return now.Sub(at).Milliseconds()
}

// Words of the wire protocol.
const (
	reofferSilent     = "silent"
	reofferUnplaced   = "unplaced"
	reofferNoKeyframe = "no-keyframe"
	reofferCodec      = "codec"
)

const (
	// Until reofferRest has passed without a request: a camera may have stopped for a reason that no offer mends.
	reofferEvery = 5 * time.Second
	maxReoffers  = 3
	reofferRest  = time.Minute
	// Silence right after DTLS means nothing.
	connectedFor = 2 * time.Second
)

// starved asks the publisher of a missing picture for a new offer, if it is connected and used to send the source. It
// is forward's OnStarved and must not block.
func (r *room) starved(s forward.Starved) {
	select {
	case r.tasks <- func() { r.reoffer(s, time.Now()) }:
	default: // busy; told again in 5 s
	}
}

func (r *room) reoffer(s forward.Starved, now time.Time) {
	p, ok := r.peers[s.Publisher]
	if !ok || p.connection == nil || !p.connected || !p.canPublish || !mayPublish(p.sources, s.Source) {
		return
	}
	mids, upAt, sent := p.connection.sending(s.Source)
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
	case len(p.connection.uplink.homeless()) > 0:
		reason = reofferUnplaced
	}
	r.log.Warn("publisher asked for a new offer", "peer", string(p.id), "source", string(s.Source), "reason", reason, "mids", mids)
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Mids: mids, Reason: reason}}})
}

// present leaves out who is only expected.
func (r *room) present() int {
	count := 0
	for _, p := range r.peers {
		if !p.expected {
			count++
		}
	}
	return count
}

func (r *room) count() {
	connected := 0
	for _, p := range r.peers {
		if p.connected {
			connected++
		}
	}
	r.peerCount.Store(int64(r.present()))
	r.connected.Store(int64(connected))
}

// announce tells everybody; of a hidden p only p.
func (r *room) announce(p *peer, change *control.RosterChange) {
	r.note(p)
	if p.entry.GetHidden() {
		r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
		return
	}
	r.seq++
	for _, p := range r.peers {
		r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
	}
}

// A peer is present in the grace time and while expected.
func (r *room) note(p *peer) {
	if !p.gone.Load() {
		r.book.Put(roster.Peer{ID: string(p.id), Identity: p.entry.GetIdentity(), Name: p.entry.GetName(), Hidden: p.entry.GetHidden()})
		return
	}
	lastSeen := time.Now()
	if !p.deadline.IsZero() {
		lastSeen = p.deadline.Add(-r.node.cfg.Grace)
	}
	r.book.Drop(string(p.id), lastSeen)
}

// rosterFor is what viewer may see, with expected people, by arrival.
func (r *room) rosterFor(viewer *peer) []*control.Peer {
	peers := make([]*peer, 0, len(r.peers))
	for _, p := range r.peers {
		if p == viewer || !p.entry.GetHidden() {
			peers = append(peers, p)
		}
	}
	slices.SortFunc(peers, func(a, b *peer) int { return cmp.Compare(a.joined, b.joined) })
	entries := make([]*control.Peer, 0, len(peers))
	for _, p := range peers {
		entries = append(entries, p.entry)
	}
	return entries
}

// Without hidden people it is computed once per change.
func (r *room) digestFor(viewer *peer) uint64 {
	if viewer.entry.GetHidden() {
		return control.RosterDigest(r.rosterFor(viewer))
	}
	if r.digest == 0 || r.digestSeq != r.seq {
		r.digest, r.digestSeq = control.RosterDigest(r.rosterFor(viewer)), r.seq
	}
	return r.digest
}

// size counts who is expected, and nobody hidden, as signaling nodes do for their clients' rooms.
func (r *room) size() *control.RoomSize {
	size := &control.RoomSize{Expected: uint32(min(max(r.people, 0), headroom.MaxPeople)), Egress: r.egress}
	one := map[bool]uint32{true: 1}
	for _, p := range r.peers {
		if e := p.entry; !e.GetHidden() {
			size.People++
			size.Cameras += one[!e.GetVideoMuted()] + one[e.GetScreenShared()]
			size.Microphones += one[!e.GetAudioMuted()] + one[e.GetScreenAudio()]
		}
	}
	return size
}

// unplaced, unless nil, gets streams without a track.
func (r *room) held(ctx context.Context, unplaced map[string][]*control.Stream) (*control.HeldRoom, error) {
	stats := r.media.Stats()
	// The kernel's refusals could be anybody's: each room counts them.
	refused := r.node.socket.Stats().Refused - r.refusedBefore
	answer := &control.HeldRoom{
		Room: string(r.id), PacketsForwarded: stats.PacketsForwarded, PacketsDropped: stats.Drops.Total() + refused,
		PacketsLate: stats.Drops.Late,
	}
	err := r.do(ctx, func() {
		answer.Pin, answer.Size = control.PinProto(r.pin()), r.size()
		for _, p := range r.peers {
			if p.expected {
				continue
			}
			answer.Peers = append(answer.Peers, &control.HeldPeer{
				Id: string(p.id), Identity: p.entry.GetIdentity(), Attached: p.outbox != nil, Connected: p.connected, Offers: p.offers,
			})
			if unplaced != nil && p.connection != nil {
				unplaced[string(p.id)] = p.connection.uplink.homeless()
			}
		}
	})
	return answer, err
}
