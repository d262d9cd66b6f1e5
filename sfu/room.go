package sfu

import (
	"context"
	"errors"
	"log/slog"
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
