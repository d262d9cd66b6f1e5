package forward

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/panics"
)

// Batcher gathers what is written between Begin and End into few system calls.
// egress.Batch is one. It is used by one goroutine at a time.
type Batcher interface {
	Begin()
	End()
}

// Config is what one room needs to know.
type Config struct {
	// OnSlots is told whose slot table has changed; Table has it. OnSpeakers is told who speaks, loudest
	// first, at most three times a second and only on a change. Both are called
	// on the room's loop: they must not block and must not call the room.
	OnSlots    func(PeerID)
	OnSpeakers func([]Speaker)
	// OnStarved is told, in the same way, of a slot that is armed and has had no picture for 2 s, and again
	// every 5 s while it lasts.
	OnStarved func(Starved)
	// OnBroken is told, in the same way, of a peer whose packets or slots made the loop panic: what it had here is dropped.
	OnBroken func(PeerID)
	Panics   *panics.Guard // nil: one of the room's own

	// Batchers gather what is written: the Writer of a slot writes into that of its Shard. With several of them the frames of a large
	// room are forwarded on as many cores. None: every packet is written by itself.
	Batchers []Batcher

	QueuePackets   int           // packets waiting for the loop; default 1024. See Layer.Push for when it is full
	MinPLIInterval time.Duration // between keyframe requests to one layer; default 320 ms
	HoldTable      time.Duration // how long a slot waits for a publisher named by SetTable; default 15 s
}

// The defaults of Config.
const (
	// At 1000 packets/s from 20 cameras it is 50 ms, and 1.6 MB.
	defaultQueuePackets = 1024
	// Chromium ignores requests that come within 300 ms of the last.
	defaultMinPLIInterval = 320 * time.Millisecond
	// Clients restart for at most three attempts of 4 s after a failover.
	defaultHoldTable = 15 * time.Second

	// holdGone is how long the slot of a publication that ended is kept for its
	// return on another connection of the same peer.
	holdGone = 3 * time.Second

	// queueTasks bounds the control calls that wait for the loop; when it is full
	// the caller waits.
	queueTasks = 256
)

// Room is the media plane of one room. Its methods are safe for concurrent use.
type Room struct {
	cfg     Config
	log     *slog.Logger
	pool    *sync.Pool
	packets chan *Packet
	tasks   chan func()
	done    chan struct{} // closed when Run has ended

	stats counters

	mu      sync.Mutex         // guards the fields below
	tables  map[PeerID][]Entry // what was last told
	lacks   map[PeerID][]Lack  // the same
	budgets map[PeerID]uint64  // what SetBudget was told and the loop has not taken over
	wants   Demand             // as of the last look

	level atomic.Uint32 // a Level

	// The fields below belong to the loop.
	layers           map[uint64]*Layer // by number
	lastNumber       uint64
	holding          holding
	pacing           pacing
	shards           shards
	handling         *Layer         // of the packet that is being handled, or that is being cared for
	publications     []*publication // in order of arrival
	sources          map[trackKey]*publication
	subscribers      map[PeerID]*subscriber
	clocks           map[PeerID]*peerClock
	speakers         speakerTracker
	tablesChanged    bool // who is shown where must be worked out again, for everybody
	speakersChanged  bool // who speaks has changed, which decides where slots are scarce
	layersChanged    bool // which layer each slot shows must be worked out again
	frozen           bool // slots keep what they show
	apart            bool // some subscriber is
	scarce           bool // somebody has fewer slots than there are sources, and who speaks decides
	restless         bool // something is due that viewers wait for; see tickInterval
	layersLooked     time.Time
	scratch          []byte   // for the packet that is being retransmitted
	demands          []demand // of the subscriber that is being arranged
	adding           *Demand  // during a look
	assignment       assignment
	sounds, pictures ranking
	looks            uint64 // calls of arrange
	lastMark         uint64 // see mark
	compared         int    // publications, by compareCodecs
	lacked           []*publication
}

// NewRoom makes a room; Run makes it work.
func NewRoom(cfg Config, log *slog.Logger) *Room {
	cfg.Panics = cmp.Or(cfg.Panics, panics.New())
	cfg.QueuePackets = cmp.Or(cfg.QueuePackets, defaultQueuePackets)
	cfg.MinPLIInterval = cmp.Or(cfg.MinPLIInterval, defaultMinPLIInterval)
	cfg.HoldTable = cmp.Or(cfg.HoldTable, defaultHoldTable)
	r := &Room{
		cfg:         cfg,
		log:         log,
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

// GetPacket takes an empty packet from the room's pool.
func (r *Room) GetPacket() *Packet {
	p, ok := r.pool.Get().(*Packet)
	if !ok {
		p = &Packet{pool: r.pool}
	}
	p.references = 1
	p.length, p.padding = 0, 0
	return p
}

// AddLayer adds one encoding of a publisher. A layer of the same peer, source
// and RID replaces an older one. It returns nil, and does nothing, while the loop has too much to do: it must not hold up
// whoever reads packets.
func (r *Room) AddLayer(cfg LayerConfig) *Layer {
	if cfg.Codec.ClockRate == 0 {
		cfg.Codec.ClockRate = map[Kind]uint32{KindAudio: 48000, KindVideo: 90000}[cfg.Kind]
	}
	l := &Layer{
		room:     r,
		cfg:      cfg,
		codec:    codecOf(cfg.Codec.MimeType),
		clock:    layerClock{rate: max(cfg.Codec.ClockRate, 1)},
		requests: keyframeRequests{interval: r.cfg.MinPLIInterval},
		cache:    newPacketCache(cfg.Kind),
	}
	if !r.try(func() { r.takeLayer(l) }) {
		return nil
	}
	return l
}

// AddSlot adds one receiving m-line of a subscriber. A slot of the same peer
// and mid replaces an older one and shows what that one showed.
func (r *Room) AddSlot(cfg SlotConfig) *Slot {
	cfg.Codecs = slices.Clone(cfg.Codecs)
	s := &Slot{room: r, cfg: cfg}
	r.post(func() { r.takeSlot(s) })
	return s
}

// SetView says what a subscriber's page shows, most important first. Until the
// first call the subscriber is shown everyone at the lowest layer; where the slots do
// not suffice, screens and who speaks.
func (r *Room) SetView(peer PeerID, wants []Want) {
	wants = slices.Clone(wants)
	r.post(func() {
		sub := r.subscriber(peer)
		sub.wants, sub.hasView, sub.changed = wants, true, true
	})
}

// SetTable says what the subscriber's slots show at present: call it when the
// client's connection was made elsewhere. The slots keep showing that, also
// before those publishers have arrived (for Config.HoldTable, and while nobody
// else needs the slot).
func (r *Room) SetTable(peer PeerID, table []Entry) {
	table = slices.Clone(table)
	r.post(func() {
		sub := r.subscriber(peer)
		sub.setTable(table, time.Now().Add(r.cfg.HoldTable))
		sub.changed = true
	})
}

// Freeze has every slot go on showing what it shows: nobody can be told of a change any more.
func (r *Room) Freeze() {
	r.post(func() { r.frozen = true })
}

// SetMuted says that a peer muted or unmuted one of its sources. A muted
// microphone never speaks; a muted source yields its slot when others need it.
func (r *Room) SetMuted(peer PeerID, source Source, muted bool) {
	r.post(func() {
		r.publication(trackKey{peer: peer, source: source}).muted = muted
		if source == SourceMicrophone {
			r.speakers.setMuted(peer, muted)
		}
		r.tablesChanged = true
	})
}

// SetBudget says how many bits per second a subscriber's transport carries, 0
// for no limit. Sound is always sent; the budget's rest is for its pictures. It does not block.
func (r *Room) SetBudget(peer PeerID, bitsPerSecond uint64) {
	r.mu.Lock()
	r.budgets[peer] = bitsPerSecond
	r.mu.Unlock()
	r.try(r.takeBudgets) // If the loop has too much to do its next tick takes them.
}

// takeBudgets takes over what SetBudget was told.
func (r *Room) takeBudgets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, budget := range r.budgets {
		if sub := r.subscribers[peer]; sub != nil {
			sub.budget = budget
			r.layersChanged, r.restless = true, true
		}
	}
	clear(r.budgets)
}

// SetRoundTrip says how long a subscriber's path takes there and back, 0 for not known. It bounds how often one packet is
// sent again. It does not block: another measurement comes soon.
func (r *Room) SetRoundTrip(peer PeerID, roundTrip time.Duration) {
	r.try(func() {
		if sub := r.subscribers[peer]; sub != nil {
			sub.roundTrip = roundTrip
		}
	})
}

// RemovePeer forgets a peer that left: its layers, its slots, its view, and
// every place that was held for it.
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
		}
		r.subscriber(peer).dropPaced()
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

// Table is what a subscriber's slots show, in the order in which they were added, as OnSlots was last told of. It may be
// called at any time, and is nil for who has had no slot.
func (r *Room) Table(peer PeerID) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tables[peer])
}

// post hands a task to the loop; it waits while the queue is full, and does
// nothing once the loop has ended.
func (r *Room) post(task func()) {
	select {
	case r.tasks <- task:
	case <-r.done:
	}
}

// try is post for those who must not wait. It reports whether the task was taken.
func (r *Room) try(task func()) bool {
	select {
	case r.tasks <- task:
		return true
	default:
		return false
	}
}
