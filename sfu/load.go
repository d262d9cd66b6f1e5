package sfu

import (
	"runtime"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/share"
)

const (
	// Above it packets wait.
	processorCeiling = 0.95
	// Bits of a packet of sound, and at least of a lowest layer's.
	soundPacketBits, lowestPacketBits = 800, 4000
)

// Only Run uses sharing.
type sharing struct {
	sharer    share.Sharer
	sent      meter
	processor time.Duration // so far
	at        time.Time
	busy      float64 // of all cores
}

// roomLoad is what the node accounts for a room: what was reserved at its opening and what is measured since.
type roomLoad struct {
	// Set when the room opens.
	opened    time.Time
	cost      headroom.Egress // reserved
	least     headroom.Egress // at the lowest layers
	people    int             // expected
	comes     float64         // see newcomer
	level     forward.Level   // to begin with
	chargedIn uint64          // first load report with the room
	// refusedBefore is the kernel's count when the room opened.
	refusedBefore uint64

	// Node.mu guards the fields below.
	measured headroom.Egress
	floor    headroom.Egress // at the lowest layers
	// connectedThroughout counts the peers that were connected during the whole measurement, since only their egress is fully measured.
	connectedThroughout int

	// Only Node.Run's goroutine uses the fields below.
	meter  meter
	toldAt time.Time // when the room was last told what it sends
	told   headroom.Egress
	limit  limit
}

// limit is whether pictures of a room are held back.
type limit struct {
	begun bool
	since time.Time // zero: none are held back
	told  bool
}

// newRoomLoad needs Node.mu.
func newRoomLoad(n *Node, a attachment, now time.Time) *roomLoad {
	l := &roomLoad{
		opened: now, cost: a.cost(), least: a.least(), people: a.people(), chargedIn: n.reportSeq + 1, refusedBefore: n.socket.Stats().Refused,
	}
	if a.request.GetUnreserved() {
		l.cost, l.least = headroom.Egress{}, headroom.Egress{}
	}
	l.level, l.comes = n.newcomer(a, now)
	return l
}

// charged is what headroom is judged by: what is measured, and for a while what missing people would add. It needs Node.mu.
func (l *roomLoad) charged(now time.Time) headroom.Egress {
	return charge(l.measured, reserved(l.cost, now.Sub(l.opened), l.people, l.connectedThroughout), l.cost)
}

// chargedFloor is the same at the lowest layers. It needs Node.mu.
func (l *roomLoad) chargedFloor(now time.Time) headroom.Egress {
	return charge(l.floor, reserved(l.least, now.Sub(l.opened), l.people, l.connectedThroughout), l.least)
}

// changes reports whether the room should be told that it sends so much to so many people.
func (l *roomLoad) changes(sent headroom.Egress, people int, now time.Time) bool {
	settled := people > 0 && l.meter.covered >= people || now.Sub(l.opened) >= egressSettles
	told := !l.toldAt.IsZero()
	return settled && (!told || now.Sub(l.toldAt) >= egressToldEvery && differ(sent, l.told))
}

// observe reports whether pictures are held back, and whether that lasts and was not told yet.
func (l *limit) observe(heldBack bool, now time.Time) (limited, changed bool) {
	switch {
	case !heldBack:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	}
	limited = !l.since.IsZero() && (l.told || now.Sub(l.since) >= limitedToldAfter)
	return limited, limited != l.told
}

// Longer than a move's keyframes.
const limitedToldAfter = 2 * time.Second

func (n *Node) share(now time.Time) {
	s, ceiling := &n.sharing, n.ceiling()
	rooms := n.openRooms()
	shared := make([]share.Room, len(rooms))
	for i, r := range rooms {
		shared[i] = share.Room{ID: r.id, Demand: r.media.Demand(), Level: r.media.Level(), New: !r.load.limit.begun}
		r.load.limit.begun = true
		if now.Sub(r.load.opened) < share.Settles {
			shared[i].Comes = r.load.comes
		}
	}
	was := s.sharer.Since()
	s.sharer.Next(now, s.used(n.socket.Stats().Bytes*8, n.socket.Stats().Packets, now, ceiling), ceiling, shared)
	for i, r := range rooms {
		r.media.SetLevel(shared[i].Level)
		demand := &shared[i].Demand
		limited, changed := r.load.limit.observe(demand.UpTo(r.media.Level()) != demand.UpTo(forward.AllLevels), now)
		if changed && r.tellLimited(limited) { // else at the next call
			r.load.limit.told = limited
		}
	}
	n.mu.Lock()
	for i, r := range rooms {
		r.load.floor = floorOf(&shared[i].Demand)
	}
	n.limitedSince = s.sharer.Since()
	n.mu.Unlock()
	switch since := s.sharer.Since(); {
	case was.IsZero() && !since.IsZero():
		n.log.Warn("pictures are held back: the node is near its ceiling", "rooms", len(rooms), "egress", s.sent.rate.String(), "ceiling", ceiling.String(), "processor", s.busy)
	case !was.IsZero() && since.IsZero():
		n.log.Info("no picture is held back any more", "rooms", len(rooms), "egress", s.sent.rate.String(), "took", now.Sub(was).Round(time.Second).String())
	}
}

// newcomer needs mu. A room that begins adds little at first: its people come one by one.
func (n *Node) newcomer(a attachment, now time.Time) (level forward.Level, comes float64) {
	if !a.running() {
		return share.Newcomer(!n.limitedSince.IsZero(), 0), 0
	}
	level = share.Newcomer(!n.limitedSince.IsZero(), n.egressNow(now).Plus(a.cost()).Share(n.ceiling()))
	if level == forward.AllLevels {
		return level, a.cost().Share(n.ceiling())
	}
	return level, a.least().Share(n.ceiling())
}

// used returns shares of the ceiling.
func (s *sharing) used(bits, packets uint64, now time.Time, ceiling headroom.Egress) share.Used {
	rate := s.sent.observe(headroom.Egress{BitsPerSecond: bits, PacketsPerSecond: packets}, now)
	if spent, ok := processorTime(); ok && now.Sub(s.at) >= loadWindow/2 {
		if !s.at.IsZero() {
			s.busy = (spent - s.processor).Seconds() / now.Sub(s.at).Seconds() / float64(runtime.GOMAXPROCS(0))
		}
		s.at, s.processor = now, spent
	}
	return share.Used{Egress: rate.Share(ceiling), Processor: s.busy / processorCeiling}
}

func floorOf(d *forward.Demand) headroom.Egress {
	pictures := d.UpTo(forward.LowestLevels) - d.Sound
	return headroom.Egress{BitsPerSecond: d.Sound + pictures, PacketsPerSecond: d.Sound/soundPacketBits + pictures/lowestPacketBits}
}

func (n *Node) ceiling() headroom.Egress {
	return headroom.Egress{BitsPerSecond: n.cfg.CeilingBitsPerSecond, PacketsPerSecond: n.cfg.CeilingPacketsPerSecond}
}

// Load is what a node measures of itself.
type Load struct {
	Seq                     uint64 // one more each report of this boot
	EgressBitsPerSecond     uint64 // each room's measured or reserved, the larger
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	Floor                   headroom.Egress // at the lowest layers
	LimitedSince            time.Time       // zero: no pictures are held back
}

// A reservation counts whole for half of reservationLife, then less and less.
const reservationLife = 10 * time.Second

// reserved is what missing people would add to what is measured.
func reserved(cost headroom.Egress, age time.Duration, expected, measured int) headroom.Egress {
	if age >= reservationLife || measured >= expected {
		return headroom.Egress{}
	}
	left := min(2*float64(reservationLife-age)/float64(reservationLife), 1)
	pairs := func(people int) float64 { return float64(people) * float64(people-1) } // each sends to each other
	if measured > 1 {
		left *= 1 - pairs(measured)/pairs(expected)
	}
	return cost.Part(left)
}

// charge bounds the sum by the cost: both count somebody's first second.
func charge(measured, reserved, cost headroom.Egress) headroom.Egress {
	return measured.Plus(reserved).Min(cost).Max(measured)
}

const (
	// A signaling node that moves a room needs to know what it sends.
	egressToldEvery = 2 * time.Second
	// Then a room is told even if not everybody is connected.
	egressSettles = reservationLife
)

func differ(a, b headroom.Egress) bool {
	return differs(a.BitsPerSecond, b.BitsPerSecond) || differs(a.PacketsPerSecond, b.PacketsPerSecond)
}

func differs(a, b uint64) bool { return max(a, b)-min(a, b) > max(a, b)/4 }

const (
	loadWindow     = time.Second
	shortestWindow = loadEvery * 9 / 10
)

// meter turns a counter into a rate. It is not safe for concurrent use.
type meter struct {
	at      time.Time
	count   headroom.Egress // in total
	rate    headroom.Egress
	people  [2]int // connected at the end of this window, and of the last
	covered int    // during both
}

func (m *meter) observe(total headroom.Egress, now time.Time) headroom.Egress {
	return m.observeOf(total, 0, now)
}

func (m *meter) observeOf(total headroom.Egress, people int, now time.Time) headroom.Egress {
	elapsed := now.Sub(m.at)
	if m.at.IsZero() || elapsed <= 0 {
		m.at, m.count, m.people[0] = now, total, people
		return m.rate
	}
	if elapsed < shortestWindow {
		return m.rate
	}
	m.covered, m.people = min(m.people[0], m.people[1], people), [2]int{people, m.people[0]}
	perSecond := func(now, before uint64) uint64 {
		return uint64(float64(now-min(before, now)) / elapsed.Seconds())
	}
	m.rate = headroom.Egress{
		BitsPerSecond:    perSecond(total.BitsPerSecond, m.count.BitsPerSecond),
		PacketsPerSecond: perSecond(total.PacketsPerSecond, m.count.PacketsPerSecond),
	}
	m.at, m.count = now, total
	return m.rate
}

const loadEvery = loadWindow / 2

// For reading media, or forwarding one room.
const maxCores = 8

func cores() int { return min(runtime.GOMAXPROCS(0), maxCores) }

// Load is of the last report.
func (n *Node) Load() Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loadNow(time.Now())
}

// NextReport is Load with a new Seq.
func (n *Node) NextReport() Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reportSeq++
	return n.loadNow(time.Now())
}

// loadNow needs mu.
func (n *Node) loadNow(now time.Time) Load {
	egress, floor, peers := n.egressNow(now), n.floorNow(now), 0
	for _, r := range n.rooms {
		peers += int(r.peerCount.Load())
	}
	return Load{
		Seq: n.reportSeq, EgressBitsPerSecond: egress.BitsPerSecond, EgressPacketsPerSecond: egress.PacketsPerSecond,
		CeilingBitsPerSecond: n.cfg.CeilingBitsPerSecond, CeilingPacketsPerSecond: n.cfg.CeilingPacketsPerSecond,
		Rooms: uint32(len(n.rooms)), Peers: uint32(peers), Floor: floor, LimitedSince: n.limitedSince,
	}
}

// egressNow is what headroom is judged by. It needs mu.
func (n *Node) egressNow(now time.Time) headroom.Egress {
	var rooms headroom.Egress
	for _, r := range n.rooms {
		rooms = rooms.Plus(r.load.charged(now))
	}
	return rooms.Max(n.measured)
}

// floorNow is what is sent at least: the lowest layers, of new rooms as expected. It needs mu.
func (n *Node) floorNow(now time.Time) headroom.Egress {
	var rooms headroom.Egress
	for _, r := range n.rooms {
		rooms = rooms.Plus(r.load.chargedFloor(now))
	}
	return rooms
}

func (n *Node) measure(now time.Time) {
	rooms := n.openRooms()
	rates := make([]headroom.Egress, len(rooms))
	for i, r := range rooms {
		stats := r.media.Stats()
		rates[i] = r.load.meter.observeOf(headroom.Egress{BitsPerSecond: stats.EgressBytes * 8, PacketsPerSecond: stats.EgressPackets}, int(r.connected.Load()), now)
		if r.load.changes(rates[i], int(r.peerCount.Load()), now) && r.tellEgress(rates[i]) {
			r.load.toldAt, r.load.told = now, rates[i]
		}
	}
	sent := n.socket.Stats()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.measured = n.socketed.observe(headroom.Egress{BitsPerSecond: sent.Bytes * 8, PacketsPerSecond: sent.Packets}, now)
	for i, r := range rooms {
		r.load.measured, r.load.connectedThroughout = rates[i], r.load.meter.covered
	}
}

// Watchers counts watching signaling nodes.
func (n *Node) Watchers() int { return int(n.watchers.Load()) }
