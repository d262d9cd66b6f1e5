package sfu

import (
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/share"
)

const (
	// With more of its processors in use than this share, packets wait.
	processorCeiling = 0.95
	// A packet of sound has so many bits, and one of a lowest layer at least.
	soundPacketBits, lowestPacketBits = 800, 4000
)

// sharing divides the node's ceiling among its rooms. Only Node.Run's goroutine uses it.
type sharing struct {
	sharer share.Sharer
	sent   meter
	// processor is the time that the process had computed at the time at.
	processor time.Duration
	at        time.Time
	// busy is the share of all cores that the process used in the last window.
	busy float64
}

// roomLoad is what the node accounts for a room: what was reserved at its opening and what is measured since.
type roomLoad struct {
	// The fields below are set when the room opens, and never changed.
	opened time.Time
	// cost is what was reserved for the people expected, and least what they would cost at the lowest layers.
	cost   headroom.Egress
	least  headroom.Egress
	people int
	// The room begins with level, and is going to add the share comes of the node's ceiling: see newcomer.
	level forward.Level
	comes float64
	// chargedIn is the number of the first load report that counts the room.
	chargedIn uint64
	// refusedBefore is how many packets the kernel had refused when the room opened.
	refusedBefore uint64

	// Node.mu guards the fields below.
	// measured is what the room sends, and floor what it would send at the lowest layers.
	measured headroom.Egress
	floor    headroom.Egress
	// connectedThroughout counts the peers that were connected during the whole measurement, since only their egress is fully measured.
	connectedThroughout int

	// Only Node.Run's goroutine uses the fields below.
	meter meter
	// told is what the room was last told that it sends, at the time toldAt.
	told   headroom.Egress
	toldAt time.Time
	limit  limit
}

// limit is whether pictures of a room are held back.
type limit struct {
	// begun says that the room has had a share of the ceiling before.
	begun bool
	// since is when pictures began to be held back, zero if none are.
	since time.Time
	told  bool
}

// newRoomLoad reserves what an Attach expects of its room. It needs Node.mu.
func newRoomLoad(n *Node, a attachment, now time.Time) *roomLoad {
	l := &roomLoad{
		opened: now, cost: n.first(a), least: a.least(), people: a.people(), chargedIn: n.reportSeq + 1, refusedBefore: n.socket.Stats().Refused,
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

// limitedToldAfter is longer than the keyframes of a move hold pictures back.
const limitedToldAfter = 2 * time.Second

// share gives every room the levels that it may send, so that all rooms together stay below the ceiling.
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
		// A busy room is told at the next call.
		if changed && r.tellLimited(limited) {
			r.load.limit.told = limited
		}
	}
	n.mu.Lock()
	for i, r := range rooms {
		r.load.floor = floorOf(&shared[i].Demand)
	}
	n.limitedSince = s.sharer.Since()
	if n.limitedSince.IsZero() && !was.IsZero() {
		n.limitedFor += now.Sub(was)
	}
	n.mu.Unlock()
	switch since := s.sharer.Since(); {
	case was.IsZero() && !since.IsZero():
		n.log.Warn("pictures are held back: the node is near its ceiling", "rooms", len(rooms), "egress", s.sent.rate.String(), "ceiling", ceiling.String(), "processor", s.busy)
	case !was.IsZero() && since.IsZero():
		n.log.Info("no picture is held back any more", "rooms", len(rooms), "egress", s.sent.rate.String(), "took", now.Sub(was).Round(time.Second).String())
	}
}

// newcomer returns the levels that a room begins with, and the share of the ceiling that it is going to add. A new room adds little at
// first, because its people come one by one; those of a running room come at once. It needs mu.
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

// used returns which shares of the ceiling and of the processors are in use.
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

// floorOf is what a room would send at the lowest layers.
func floorOf(d *forward.Demand) headroom.Egress {
	pictures := d.UpTo(forward.LowestLevels) - d.Sound
	return headroom.Egress{BitsPerSecond: d.Sound + pictures, PacketsPerSecond: d.Sound/soundPacketBits + pictures/lowestPacketBits}
}

func (n *Node) ceiling() headroom.Egress {
	return headroom.Egress{BitsPerSecond: n.cfg.CeilingBitsPerSecond, PacketsPerSecond: n.cfg.CeilingPacketsPerSecond}
}

// Load is what a node measures of itself.
type Load struct {
	// Seq is one more with each report of this boot.
	Seq uint64
	// The egress is what all rooms send, with what is reserved for people who are not measured yet.
	EgressBitsPerSecond     uint64
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	// Floor is the egress at the lowest layers.
	Floor headroom.Egress
	// LimitedSince is when pictures began to be held back, zero if none are.
	LimitedSince time.Time
}

// A reservation counts whole for half of reservationLife, then less and less.
const reservationLife = 10 * time.Second

// reserved is what people who are expected, but not measured yet, would add to what is measured. It goes down with the age of the room,
// and with the pairs of people who are measured already.
func reserved(cost headroom.Egress, age time.Duration, expected, measured int) headroom.Egress {
	if age >= reservationLife || measured >= expected {
		return headroom.Egress{}
	}
	left := min(2*float64(reservationLife-age)/float64(reservationLife), 1)
	// Each of the people sends to every other.
	pairs := func(people int) float64 { return float64(people) * float64(people-1) }
	if measured > 1 {
		left *= 1 - pairs(measured)/pairs(expected)
	}
	return cost.Part(left)
}

// charge adds what is reserved to what is measured. In somebody's first second both count them, so the cost bounds the sum.
func charge(measured, reserved, cost headroom.Egress) headroom.Egress {
	return measured.Plus(reserved).Min(cost).Max(measured)
}

const (
	// A signaling node that moves a room needs to know what it sends.
	egressToldEvery = 2 * time.Second
	// By then a room is told what it sends even if not everybody is connected.
	egressSettles = reservationLife
)

func differ(a, b headroom.Egress) bool {
	return differs(a.BitsPerSecond, b.BitsPerSecond) || differs(a.PacketsPerSecond, b.PacketsPerSecond)
}

// differs reports whether one of the two is more than a quarter below the other.
func differs(a, b uint64) bool { return max(a, b)-min(a, b) > max(a, b)/4 }

const (
	loadWindow     = time.Second
	shortestWindow = loadEvery * 9 / 10
)

// meter turns a counter into a rate. It is not safe for concurrent use.
type meter struct {
	at    time.Time
	count headroom.Egress
	rate  headroom.Egress
	// people were connected at the end of this window and of the one before; covered, the least of them, during both.
	people  [2]int
	covered int
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

// maxCores is how many cores read media, and how many forward one room.
const maxCores = 8

func cores() int { return min(runtime.GOMAXPROCS(0), maxCores) }

// Load returns the present load under the number of the last report.
func (n *Node) Load() Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loadNow(time.Now())
}

// NextReport returns the present load under a new number.
func (n *Node) NextReport() Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reportSeq++
	return n.loadNow(time.Now())
}

// loadNow sums up the load. It needs mu.
func (n *Node) loadNow(now time.Time) Load {
	egress, floor, peers := n.egressNow(now), n.floorNow(now), 0
	for r := range n.sending() {
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
	for r := range n.sending() {
		rooms = rooms.Plus(r.load.charged(now))
	}
	return rooms.Max(n.measured)
}

// floorNow is what is sent at least: the lowest layers, of new rooms as expected. It needs mu.
func (n *Node) floorNow(now time.Time) headroom.Egress {
	var rooms headroom.Egress
	for r := range n.sending() {
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
		if n.standby != nil {
			r.tellStandby()
		}
	}
	sent := n.socket.Stats()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.measured = n.socketed.observe(headroom.Egress{BitsPerSecond: sent.Bytes * 8, PacketsPerSecond: sent.Packets}, now)
	for i, r := range rooms {
		r.load.measured, r.load.connectedThroughout = rates[i], r.load.meter.covered
	}
	// Signaling nodes do not ask a full node, so it refuses nobody by whom its limit could be noticed.
	if egress := n.egressNow(now); !headroom.Takes(egress, headroom.Expect(headroom.DefaultPeople).Cost(), n.ceiling()) {
		n.reached("", limitHeadroom, fmt.Sprintf("no headroom for another room: egress %v, ceiling %v", egress, n.ceiling()))
	}
}

// Watchers counts watching signaling nodes.
func (n *Node) Watchers() int { return int(n.watchers.Load()) }
