package forward

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

// Batcher gathers what is written between Begin and End into few system calls, for one goroutine at a time.
type Batcher interface {
	Begin()
	End()
}

// Config configures a room. Its callbacks run on the loop: they must not block or call the room.
type Config struct {
	// OnSlots is told whose Table or Lacks changed, OnSpeakers of changes: loudest first, at most every 300 ms.
	OnSlots    func(PeerID)
	OnSpeakers func([]Speaker)
	// OnStarved is told of a ready slot without a picture for 2 s, then every 5 s.
	OnStarved func(Starved)
	// OnBroken is told of a peer dropped after a panic.
	OnBroken func(PeerID)
	Panics   *panics.Guard // nil: the room's own

	// Batchers are indexed by Shard; several use several cores. Without any, each packet is written alone.
	Batchers []Batcher

	QueuePackets   int           // default 1024
	MinPLIInterval time.Duration // for each layer; default 320 ms
	HoldTable      time.Duration // see SetTable; default 15 s
}

const (
	defaultQueuePackets = 1024
	// Chromium ignores requests within 300 ms of the last.
	defaultMinPLIInterval = 320 * time.Millisecond
	// Clients restart for 12 s after a failover.
	defaultHoldTable = 15 * time.Second

	// How long a place waits for the peer's next connection.
	holdGone = 3 * time.Second

	queueTasks = 256
)

// Room is one room's media plane. It is safe for concurrent use.
type Room struct {
	cfg     Config
	log     *slog.Logger
	begun   time.Time // see wall
	pool    *sync.Pool
	packets chan *Packet
	tasks   chan func()
	done    chan struct{}

	stats counters

	mu      sync.Mutex // guards the fields below
	tables  map[PeerID][]Entry
	lacks   map[PeerID][]Lack
	budgets map[PeerID]uint64 // not yet taken over by the loop
	wants   Demand

	level atomic.Uint32

	// The loop owns the fields below.
	layers           map[uint64]*Layer
	lastNumber       uint64
	holding          holding
	pacing           pacing
	backlog          backlog
	shards           shards
	handling         *Layer
	publications     []*publication
	sources          map[trackKey]*publication
	subscribers      map[PeerID]*subscriber
	clocks           map[PeerID]*peerClock
	speakers         speakerTracker
	tablesChanged    bool
	speakersChanged  bool
	layersChanged    bool
	frozen           bool
	apart            bool
	scarce           bool
	viewersWait      bool // see tickInterval
	layersLooked     time.Time
	scratch          []byte // for resending
	demands          []demand
	adding           *Demand // during a look
	assignment       assignment
	sounds, pictures ranking
	looks            uint64
	lastMark         uint64
	compared         int
	lacked           []*publication
}

// NewRoom starts nothing; see Run.
func NewRoom(cfg Config, log *slog.Logger) *Room {
	cfg.Panics = cmp.Or(cfg.Panics, panics.New())
	cfg.QueuePackets = cmp.Or(cfg.QueuePackets, defaultQueuePackets)
	cfg.MinPLIInterval = cmp.Or(cfg.MinPLIInterval, defaultMinPLIInterval)
	cfg.HoldTable = cmp.Or(cfg.HoldTable, defaultHoldTable)
	r := &Room{
		cfg:         cfg,
		log:         log,
		begun:       time.Now(),
		pool:        newPacketPool(),
		packets:     make(chan *Packet, cfg.QueuePackets),
		tasks:       make(chan func(), queueTasks),
		done:        make(chan struct{}),
		tables:      make(map[PeerID][]Entry),
		lacks:       make(map[PeerID][]Lack),
		budgets:     make(map[PeerID]uint64),
		layers:      make(map[uint64]*Layer),
		sources:     make(map[trackKey]*publication),
		holding:     newHolding(),
		pacing:      newPacing(),
		backlog:     newBacklog(),
		shards:      newShards(len(cfg.Batchers)),
		stats:       counters{shards: make([]shardCounters, max(len(cfg.Batchers), 1))},
		subscribers: make(map[PeerID]*subscriber),
		clocks:      make(map[PeerID]*peerClock),
		speakers:    newSpeakerTracker(),
		scratch:     make([]byte, 0, packetCapacity+2),
	}
	r.level.Store(uint32(AllLevels))
	return r
}

// GetPacket takes an empty packet from the pool.
func (r *Room) GetPacket() *Packet {
	p, ok := r.pool.Get().(*Packet)
	if !ok {
		p = &Packet{pool: r.pool}
	}
	p.references = 1
	p.length, p.padding = 0, 0
	return p
}

// AddLayer replaces a layer of the same peer, source and RID. Nil: the loop is too busy.
func (r *Room) AddLayer(cfg LayerConfig) *Layer {
	if cfg.Codec.ClockRate == 0 {
		cfg.Codec.ClockRate = map[Kind]uint32{KindAudio: 48000, KindVideo: 90000}[cfg.Kind]
	}
	l := &Layer{
		room:     r,
		cfg:      cfg,
		codec:    parse.CodecOf(cfg.Codec.MimeType),
		ids:      parse.ExtensionIDs{AudioLevel: cfg.AudioLevelExtensionID, Passed: cfg.Passed, Descriptor: cfg.DescriptorID},
		clock:    layerClock{rate: max(cfg.Codec.ClockRate, 1)},
		requests: keyframeRequests{interval: r.cfg.MinPLIInterval},
		cache:    newPacketCache(cfg.Kind),
	}
	if !r.try(func() { r.takeLayer(l) }) {
		return nil
	}
	return l
}

// AddSlot replaces a slot of the same peer and mid, with what it showed.
func (r *Room) AddSlot(cfg SlotConfig) *Slot {
	cfg.Codecs = slices.Clone(cfg.Codecs)
	s := &Slot{room: r, cfg: cfg}
	r.post(func() { r.takeSlot(s) })
	return s
}

// SetView says what the peer's page shows, most important first. Without it, all are shown at the lowest layer.
func (r *Room) SetView(peer PeerID, wants []Want) {
	wants = slices.Clone(wants)
	r.post(func() {
		sub := r.subscriber(peer)
		sub.wants, sub.hasView, sub.changed = wants, true, true
	})
}

// SetTable says what an earlier connection's slots show. Absent publishers keep theirs for Config.HoldTable.
func (r *Room) SetTable(peer PeerID, table []Entry) {
	table = slices.Clone(table)
	r.post(func() {
		sub := r.subscriber(peer)
		sub.setTable(table, time.Now().Add(r.cfg.HoldTable))
		sub.changed = true
	})
}

// Freeze stops the reassignment of slots.
func (r *Room) Freeze() {
	r.post(func() { r.frozen = true })
}

// SetMuted takes a muted source out of the speakers; its slot yields to others.
func (r *Room) SetMuted(peer PeerID, source Source, muted bool) {
	r.post(func() {
		r.publication(trackKey{peer: peer, source: source}).muted = muted
		if source == SourceMicrophone {
			r.speakers.setMuted(peer, muted)
		}
		r.tablesChanged = true
	})
}

// SetBudget says what the peer's transport carries, 0 for no limit. It does not block.
func (r *Room) SetBudget(peer PeerID, bitsPerSecond uint64) {
	r.mu.Lock()
	r.budgets[peer] = bitsPerSecond
	r.mu.Unlock()
	r.try(r.takeBudgets) // else at the next tick
}

func (r *Room) takeBudgets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, budget := range r.budgets {
		if sub := r.subscribers[peer]; sub != nil {
			sub.budget = budget
			r.layersChanged, r.viewersWait = true, true
		}
	}
	clear(r.budgets)
}

// SetRoundTrip bounds how often a packet is sent again; 0: unknown. It may be lost.
func (r *Room) SetRoundTrip(peer PeerID, roundTrip time.Duration) {
	r.try(func() {
		if sub := r.subscribers[peer]; sub != nil {
			sub.roundTrip = roundTrip
		}
	})
}

// RemovePeer also gives up the places held for the peer. Its connections may still be adding slots and layers: their Gone,
// which must be true by now, refuses them. Who returns under the same id brings another Gone.
func (r *Room) RemovePeer(peer PeerID) {
	r.post(func() {
		for _, l := range slices.Collect(maps.Values(r.layers)) {
			if l.cfg.Peer == peer {
				r.dropLayer(l)
			}
		}
		if sub := r.subscribers[peer]; sub != nil {
			for _, s := range slices.Clone(sub.slots) {
				r.dropSlot(s)
			}
			sub.dropPaced()
		}
		delete(r.subscribers, peer)
		delete(r.clocks, peer)
		r.speakers.remove(peer)
		r.dropPublications(peer)
		for _, sub := range r.subscribers {
			maps.DeleteFunc(sub.holds, func(key trackKey, _ time.Time) bool { return key.peer == peer })
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tables, peer)
		delete(r.lacks, peer)
		r.tablesChanged = true
	})
}

// Table is what the peer's slots show, in the order of AddSlot; nil without slots.
func (r *Room) Table(peer PeerID) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tables[peer])
}

// post waits while the queue is full, and does nothing once the loop has ended.
func (r *Room) post(task func()) {
	select {
	case r.tasks <- task:
	case <-r.done:
	}
}

func (r *Room) try(task func()) bool {
	select {
	case r.tasks <- task:
		return true
	default:
		return false
	}
}

// Stats may be called at any time.
func (r *Room) Stats() Stats {
	c := &r.stats
	var forwarded, egressPackets, egressBytes uint64
	for i := range c.shards {
		shard := &c.shards[i]
		forwarded += shard.forwarded.Load()
		egressPackets += shard.egressPackets.Load()
		egressBytes += shard.egressBytes.Load()
	}
	return Stats{
		PacketsIn:        c.packetsIn.Load(),
		PacketsForwarded: forwarded,
		Retransmitted:    c.retransmitted.Load(),
		RetransmitMisses: c.retransmitMisses.Load(),
		KeyframeRequests: c.keyframeRequests.Load(),
		ProbePackets:     c.probes.Load(),
		EgressPackets:    egressPackets,
		EgressBytes:      egressBytes,
		Drops: Drops{
			QueueFull: c.queueFull.Load(),
			Late:      c.late.Load(),
			Write:     c.writeErrors.Load(),
			Malformed: c.malformed.Load(),
		},
	}
}

// Refresh asks for keyframes of slots that show nothing; soon again, it begins them anew.
func (r *Room) Refresh(peer PeerID, mids []string) {
	mids = slices.Clone(mids)
	r.post(func() {
		sub := r.subscribers[peer]
		if sub == nil {
			return
		}
		now := time.Now()
		for _, s := range sub.slots {
			if slices.Contains(mids, s.cfg.Mid) {
				s.refresh(now)
			}
		}
		sub.changed = true
	})
}

const (
	refreshEvery = 500 * time.Millisecond
	refreshAgain = 3 * time.Second
)

// Lacks returns what OnSlots last told of. Do not change it.
func (r *Room) Lacks(peer PeerID) []Lack {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lacks[peer]
}

// Demand is at most lookInterval old.
func (r *Room) Demand() Demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wants
}

// Level is the last one that was set.
func (r *Room) Level() Level { return Level(r.level.Load()) }

// SetLevel does not block.
func (r *Room) SetLevel(level Level) {
	if Level(r.level.Swap(uint32(min(level, AllLevels)))) != level {
		r.try(func() { r.layersChanged, r.viewersWait = true, true }) // a busy loop looks soon anyway
	}
}

// States waits for the loop; nil once that has ended.
func (r *Room) States() map[PeerID]PeerState {
	told := make(chan map[PeerID]PeerState, 1)
	r.post(func() {
		defer close(told) // also after a panic
		told <- r.states(time.Now())
	})
	select {
	case states := <-told:
		return states
	case <-r.done:
		return nil
	}
}

func (r *Room) states(now time.Time) map[PeerID]PeerState {
	states := make(map[PeerID]PeerState, len(r.subscribers))
	for _, pub := range r.publications {
		state := states[pub.key.peer]
		for _, l := range pub.layers {
			state.Layers = append(state.Layers, LayerState{
				Source: pub.key.source, RID: l.cfg.RID, SSRC: l.cfg.SSRC, Muted: pub.muted,
				PacketsIn: l.packets, HeardAt: l.lastHeard, BitsPerSecond: l.bits(), Height: l.height,
				KeyframesAsked: l.requests.sent, AskedAt: l.requests.last, KeyframesSeen: l.keyframe.Count, SeenAt: l.keyframe.At,
			})
		}
		states[pub.key.peer] = state
	}
	for id, sub := range r.subscribers {
		state := states[id]
		state.BudgetBitsPerSecond, state.ShortBitsPerSecond = sub.budget, sub.short
		for _, s := range sub.slots {
			slot := SlotState{
				Entry: s.told(), Ready: s.ready, Waits: r.waits(sub, s, now), Target: ridName(s.target), Sent: ridName(s.current),
				PacketsOut: uint64(s.report.packets), KeyframesAsked: s.keyframesAsked, AskedAt: s.askedAt,
				KeyframesSent: s.keyframes, SentAt: s.keyframeAt,
			}
			if s.target != nil {
				slot.PacketsIn = s.target.packets
			}
			state.Slots = append(state.Slots, slot)
		}
		states[id] = state
	}
	return states
}

func (r *Room) waits(sub *subscriber, s *Slot, now time.Time) string {
	switch {
	case s.entry.Peer == "":
		return ""
	case sub.wanted(s.entry).hidden:
		return "the page: it hides the picture"
	case s.paused && s.restrained:
		return "the node: it is near its ceiling of egress"
	case s.paused:
		return fmt.Sprintf("the path: it carries %d bit/s", sub.budget)
	case s.target == nil:
		return "the publisher's track"
	case !s.ready:
		return "the subscriber's transport"
	case !s.target.alive(now):
		return fmt.Sprintf("packets of layer %s", ridName(s.target))
	case s.current == nil && s.cfg.Kind == KindVideo:
		return fmt.Sprintf("a keyframe of layer %s", ridName(s.target))
	default:
		return ""
	}
}

// wall is t by a wall clock that nobody sets: the machine's as it was when the room began, and from there the monotonic one.
func (r *Room) wall(t time.Time) time.Time { return r.begun.Round(0).Add(t.Sub(r.begun)) }

// RoundTrip reads a receiver report (RFC 3550 section 6.4.1): lsr is the middle 32 bits of our NTP time, delay is in
// 1/65536 s. False: impossible values.
func (r *Room) RoundTrip(arrived time.Time, lsr, delay uint32) (time.Duration, bool) {
	const most = 10 * time.Second
	units := uint32(ntpTime(r.wall(arrived))>>16) - lsr - delay
	rtt := time.Duration(units) * time.Second >> 16
	return rtt, rtt < most
}
