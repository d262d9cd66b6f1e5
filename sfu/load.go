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

// limit is what Node.share knows of a room.
type limit struct {
	begun bool
	since time.Time // zero: none are held back
	told  bool
}

func (n *Node) share(now time.Time) {
	s, ceiling := &n.sharing, n.ceiling()
	rooms := n.openRooms()
	shared := make([]share.Room, len(rooms))
	for i, r := range rooms {
		shared[i] = share.Room{ID: r.id, Demand: r.media.Demand(), Level: r.media.Level(), New: !r.limit.begun}
		r.limit.begun = true
		if now.Sub(r.opened) < share.Settles {
			shared[i].Comes = r.comes
		}
	}
	was := s.sharer.Since()
	s.sharer.Next(now, s.used(n.socket.Stats().Bytes*8, n.socket.Stats().Packets, now, ceiling), ceiling, shared)
	for i, r := range rooms {
		r.media.SetLevel(shared[i].Level)
		r.tellLimited(&shared[i].Demand, now)
	}
	n.mu.Lock()
	for i, r := range rooms {
		r.floor = floorOf(&shared[i].Demand)
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
		rooms = rooms.Plus(charge(r.measured, reserved(r.cost, now.Sub(r.opened), r.people, r.covered), r.cost))
	}
	return rooms.Max(n.measured)
}

// floorNow is what is sent at least: the lowest layers, of new rooms as expected. It needs mu.
func (n *Node) floorNow(now time.Time) headroom.Egress {
	var rooms headroom.Egress
	for _, r := range n.rooms {
		rooms = rooms.Plus(charge(r.floor, reserved(r.least, now.Sub(r.opened), r.people, r.covered), r.least))
	}
	return rooms
}

func (n *Node) measure(now time.Time) {
	rooms := n.openRooms()
	rates := make([]headroom.Egress, len(rooms))
	for i, r := range rooms {
		stats := r.media.Stats()
		rates[i] = r.meter.observeOf(headroom.Egress{BitsPerSecond: stats.EgressBytes * 8, PacketsPerSecond: stats.EgressPackets}, int(r.connected.Load()), now)
		r.tellEgress(rates[i], r.meter.covered, now)
	}
	sent := n.socket.Stats()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.measured = n.socketed.observe(headroom.Egress{BitsPerSecond: sent.Bytes * 8, PacketsPerSecond: sent.Packets}, now)
	for i, r := range rooms {
		r.measured, r.covered = rates[i], r.meter.covered
	}
}

// Watchers counts watching signaling nodes.
func (n *Node) Watchers() int { return int(n.watchers.Load()) }
