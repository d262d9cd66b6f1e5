package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
)

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
