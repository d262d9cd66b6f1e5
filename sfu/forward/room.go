package forward

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"
)

// Batcher gathers what is written between Begin and End into few system calls, for one goroutine at a time.
type Batcher interface {
	Begin()
	End()
}

// Config configures a room. Its callbacks run on the loop, OnBroken also on a reader: they must not block or call the room.
type Config struct {
	// OnSlots is told whose Table or Lacks changed, OnSpeakers of changes: loudest first, at most every 300 ms.
	OnSlots    func(PeerID)
	OnSpeakers func([]Speaker)
	// OnStarved is told of a ready slot without a picture for 2 s, then every 5 s.
	OnStarved func(Starved)
	// OnBroken is told of a peer dropped after a panic.
	OnBroken func(PeerID)
	// Panics counts caught panics; nil for a counter of the room's own.
	Panics *panics.Guard

	// Batchers are indexed by Shard; several use several cores. Without any, each packet is written alone.
	Batchers []Batcher

	// QueuePackets is how many packets wait for the loop; 1024 by default.
	QueuePackets int
	// MinPLIInterval is the least time between requests for keyframes of one layer; 320 ms by default.
	MinPLIInterval time.Duration
	// HoldTable is explained at Room.SetTable; 15 s by default.
	HoldTable time.Duration
}

const (
	defaultQueuePackets = 1024
	// Chromium ignores a request for a keyframe within 300 ms of the last one.
	defaultMinPLIInterval = 320 * time.Millisecond
	// After a failover, clients take up to 12 s to come back.
	defaultHoldTable = 15 * time.Second

	// holdGone is how long a slot keeps the place of a publication that ended, for the publisher's next connection.
	holdGone = 3 * time.Second

	queueTasks = 256
)

// Room is one room's media plane. It is safe for concurrent use.
type Room struct {
	cfg     Config
	log     *slog.Logger
	wall    rtptime.WallClock
	pool    *sync.Pool
	packets chan *Packet
	tasks   chan func()
	done    chan struct{}

	// Other goroutines read and write these three, while the loop runs.
	stats  counters
	shared shared
	level  atomic.Uint32

	// Who holds turn owns the fields below: the loop in each of its steps, or a reader that forwards sound. members are who publishes and who receives; speakers, assignment, selection and codecs decide
	// what each slot shows; frames, pacing, backlog and shards are where packets wait on their way.
	turn       turn
	members    members
	speakers   speakerTracker
	assignment assignment
	selection  layerSelection
	codecs     codecComparison
	frames     frameGatherer
	pacing     pacing
	backlog    backlog
	shards     shards

	watchers []Watcher

	// handling is the layer whose packet is being handled, for catchPacket.
	handling *Layer
	// changed is what updateSubscribers has to look at.
	changed changes
	// viewersWait asks for the shortest interval between ticks.
	viewersWait bool
	// pictures: the room has layers of pictures.
	pictures bool
	// measuredAt is when the rates of layers were last measured.
	measuredAt time.Time
	// scratch is where packets are put together that are sent again.
	scratch []byte
}

// changes are what has happened since subscribers' slots were last assigned.
type changes struct {
	// tables: anybody's slots may show something else.
	tables bool
	// speakers: who is shown may depend on who speaks now.
	speakers bool
	// layers: a slot may be sent another layer of what it shows.
	layers bool
	// ranking: who speaks has changed since publications were last ranked. A room where everybody has a slot ranks them only once
	// somebody's slots are assigned.
	ranking bool
	// muted are publications that were muted or unmuted. Most of them concern few subscribers; see assignment.concernsMute.
	muted []*publication
}

func (c *changes) clear() { *c = changes{ranking: c.ranking, muted: c.muted[:0]} }

// NewRoom starts nothing; see Run.
func NewRoom(cfg Config, log *slog.Logger) *Room {
	cfg.Panics = cmp.Or(cfg.Panics, panics.New())
	cfg.QueuePackets = cmp.Or(cfg.QueuePackets, defaultQueuePackets)
	cfg.MinPLIInterval = cmp.Or(cfg.MinPLIInterval, defaultMinPLIInterval)
	cfg.HoldTable = cmp.Or(cfg.HoldTable, defaultHoldTable)
	pool := newPacketPool()
	r := &Room{
		cfg:      cfg,
		log:      log,
		wall:     rtptime.WallClock{Begun: time.Now()},
		pool:     pool,
		packets:  make(chan *Packet, cfg.QueuePackets),
		tasks:    make(chan func(), queueTasks),
		done:     make(chan struct{}),
		stats:    newCounters(len(cfg.Batchers)),
		shared:   newShared(),
		members:  newMembers(),
		turn:     newTurn(),
		speakers: newSpeakerTracker(),
		frames:   newFrameGatherer(),
		pacing:   newPacing(),
		backlog:  newBacklog(),
		shards:   newShards(cfg.Batchers, pool),
		scratch:  make([]byte, 0, packetCapacity+2),
	}
	r.assignment = assignment{members: &r.members, speakers: &r.speakers}
	r.selection.members = &r.members
	r.level.Store(uint32(AllLevels))
	return r
}

// GetPacket takes an empty packet from the pool.
func (r *Room) GetPacket() *Packet {
	return getPacket(r.pool)
}

// AddLayer adds a layer, in place of one of the same peer, source and RID. It returns nil if the loop is too busy.
func (r *Room) AddLayer(cfg LayerConfig) *Layer {
	if cfg.Codec.ClockRate == 0 {
		cfg.Codec.ClockRate = map[Kind]uint32{KindAudio: 48000, KindVideo: 90000}[cfg.Kind]
	}
	l := &Layer{
		room:     r,
		cfg:      cfg,
		codec:    parse.CodecOf(cfg.Codec.MimeType),
		ids:      parse.ExtensionIDs{AudioLevel: cfg.AudioLevelExtensionID, Passed: cfg.Passed, Descriptor: cfg.DescriptorID},
		clock:    rtptime.StreamClock{Rate: max(cfg.Codec.ClockRate, 1)},
		requests: keyframeRequests{interval: r.cfg.MinPLIInterval},
		cache:    newPacketCache(cfg.Kind),
	}
	if !r.try(func() { r.takeLayer(l) }) {
		return nil
	}
	return l
}

// AddSlot adds a slot, in place of one of the same peer and mid. The new slot shows what the old one showed.
func (r *Room) AddSlot(cfg SlotConfig) *Slot {
	cfg.Codecs = slices.Clone(cfg.Codecs)
	s := &Slot{room: r, cfg: cfg}
	s.continueAt(cfg.Continue)
	r.post(func() { r.members.addSlot(s) })
	return s
}

// RemovePeer looks at others' slots only if they show the peer, or may: viewers come and go without a cost for everybody. It also gives up the places held for the peer. Its connections may still be adding slots and layers: their Gone,
// which must be true by now, refuses them. A peer that returns under the same id brings another Gone.
func (r *Room) RemovePeer(peer PeerID) {
	r.post(func() {
		for _, l := range slices.Collect(maps.Values(r.members.layers)) {
			if l.cfg.Peer == peer {
				r.dropLayer(l)
			}
		}
		if sub := r.members.subscribers[peer]; sub != nil {
			for _, s := range slices.Clone(sub.slots) {
				s.close()
			}
			sub.dropPaced()
		}
		r.speakers.remove(peer)
		r.members.remove(peer)
		r.shared.remove(peer)
	})
}

// SetView says what the peer's page shows, most important first. Without a view, everybody is shown at the lowest layer. Sound is heard
// unless the view has it with no size.
func (r *Room) SetView(peer PeerID, wants []Want) {
	wants = slices.Clone(wants)
	r.post(func() {
		sub := r.members.subscriber(peer)
		sub.wants, sub.unheard, sub.hasView, sub.changed = wants, unheardOf(wants), true, true
	})
}

// SetTable says what the slots of an earlier connection showed, so that the new ones show the same. A publisher who is not there yet keeps
// its slot for Config.HoldTable.
func (r *Room) SetTable(peer PeerID, table []Entry) {
	table = slices.Clone(table)
	r.post(func() {
		sub := r.members.subscriber(peer)
		sub.setTable(table, time.Now().Add(r.cfg.HoldTable))
		sub.changed = true
	})
}

// Freeze stops the reassignment of slots.
func (r *Room) Freeze() {
	r.post(func() { r.assignment.frozen = true })
}

// SetMuted takes a muted source out of the speakers; its slot yields to others.
func (r *Room) SetMuted(peer PeerID, source Source, muted bool) {
	r.post(func() {
		p := r.members.publication(trackKey{peer: peer, source: source})
		if source == SourceMicrophone {
			r.speakers.setMuted(peer, muted)
			r.changed.speakers = true
		}
		if p.muted != muted {
			p.muted = muted
			r.changed.muted = append(r.changed.muted, p)
		}
	})
}

// SetBudget says what the peer's transport carries, 0 for no limit. It does not block.
func (r *Room) SetBudget(peer PeerID, bitsPerSecond uint64) {
	r.shared.setBudget(peer, bitsPerSecond)
	// A busy loop takes it at its next tick.
	r.try(r.takeBudgets)
}

// SetRoundTrip sets the round trip time within which a packet is not sent a second time; 0 is unknown. A busy loop ignores the call.
func (r *Room) SetRoundTrip(peer PeerID, roundTrip time.Duration) {
	r.try(func() {
		if sub := r.members.subscribers[peer]; sub != nil {
			sub.roundTrip = roundTrip
		}
	})
}

const (
	refreshEvery = 500 * time.Millisecond
	refreshAgain = 3 * time.Second
)

// Refresh asks for keyframes, because the receiver says that these slots show nothing. A second call within refreshAgain begins the slots
// anew.
func (r *Room) Refresh(peer PeerID, mids []string) {
	mids = slices.Clone(mids)
	r.post(func() {
		sub := r.members.subscribers[peer]
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

// RoundTrip reads a receiver report (RFC 3550 section 6.4.1): lsr is the middle 32 bits of our NTP time, delay is in
// 1/65536 s. It returns false for impossible values.
func (r *Room) RoundTrip(arrived time.Time, lsr, delay uint32) (time.Duration, bool) {
	const most = 10 * time.Second
	units := uint32(rtptime.NTP(r.wall.At(arrived))>>16) - lsr - delay
	rtt := time.Duration(units) * time.Second >> 16
	return rtt, rtt < most
}

// Table is what the peer's slots show, in the order of AddSlot; nil without slots.
func (r *Room) Table(peer PeerID) []Entry {
	return r.shared.table(peer)
}

// Lacks returns the pictures whose codec the peer lacks, as of the last call of OnSlots. The caller must not change it.
func (r *Room) Lacks(peer PeerID) []Lack {
	return r.shared.lacksOf(peer)
}

// Stats may be called at any time.
func (r *Room) Stats() Stats { return r.stats.read() }

// Demand is at most measureInterval old, or soundInterval without pictures.
func (r *Room) Demand() Demand {
	return r.shared.lastDemand()
}

// Level is the last one that was set.
func (r *Room) Level() Level { return Level(r.level.Load()) }

// SetLevel does not block.
func (r *Room) SetLevel(level Level) {
	if Level(r.level.Swap(uint32(min(level, AllLevels)))) != level {
		// A busy loop sees the level at its next tick.
		r.try(func() { r.changed.layers, r.viewersWait = true, true })
	}
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

func (r *Room) takeLayer(l *Layer) {
	if l.closed || l.number != 0 {
		return
	}
	if l.cfg.Gone != nil && l.cfg.Gone() {
		r.dropLayer(l)
		return
	}
	r.members.number(l)
	l.lastHeard = time.Now()
	l.feed.wanted, l.feed.unwantedSince = !l.Remote(), l.lastHeard
	l.peer = r.members.clock(l.cfg.Peer)
	l.format = parse.FormatOf(l.cfg.Codec.MimeType, l.cfg.Codec.Fmtp)
	pub := r.members.publication(l.cfg.key())
	for _, old := range slices.Clone(pub.layers) {
		if old.cfg.RID == l.cfg.RID {
			r.dropLayer(old)
		}
	}
	pub.kind = l.cfg.Kind
	r.pictures = r.pictures || l.cfg.Kind == KindVideo
	pub.layers = append(pub.layers, l)
	r.changed.tables = true
	for _, w := range r.watchers {
		w.Added(l)
	}
}

func (r *Room) dropLayer(l *Layer) {
	if l.closed {
		return
	}
	l.closed = true
	delete(r.members.layers, l.number)
	r.frames.remove(l)
	l.dropFrame()
	l.cache.clear()
	for _, s := range l.slots {
		if s.current == l {
			s.current = nil
		}
		if s.target == l {
			s.target = nil
		}
	}
	l.slots = nil
	l.unwant()
	if l.number != 0 {
		for _, w := range r.watchers {
			w.Dropped(l)
		}
	}
	r.changed.tables = true
	pub := r.members.sources[l.cfg.key()]
	if pub == nil || !slices.Contains(pub.layers, l) {
		return
	}
	pub.layers = slices.DeleteFunc(pub.layers, func(other *Layer) bool { return other == l })
	if len(pub.layers) > 0 {
		return
	}
	until := time.Now().Add(holdGone)
	for _, sub := range r.members.subscribers {
		if sub.shows(pub.key) {
			sub.holds[pub.key] = until
		}
	}
}

func (r *Room) takeBudgets() {
	if r.shared.takeBudgets(r.members.subscribers) {
		r.changed.layers, r.viewersWait = true, true
	}
}
