package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
)

// Load is what a node measures of itself.
type Load struct {
	Seq                     uint64 // grows by one per report of this boot
	EgressBitsPerSecond     uint64 // the larger, room by room, of what is sent and what is reserved
	EgressPacketsPerSecond  uint64
	CeilingBitsPerSecond    uint64
	CeilingPacketsPerSecond uint64
	Rooms                   uint32
	Peers                   uint32
	Floor                   headroom.Egress // what would be sent and is reserved at the lowest layers
	LimitedSince            time.Time       // when pictures began to be held back; zero: none are
}

// reservationLife is how long the expected cost of a room counts: whole for the first half, then falling to nothing.
const reservationLife = 10 * time.Second

// reserved is what those who are missing of the expected people would add to what is measured.
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

// charge is what a room counts for. In somebody's first second both are counted, so the sum is bounded by the expected cost.
func charge(measured, reserved, cost headroom.Egress) headroom.Egress {
	return measured.Plus(reserved).Min(cost).Max(measured)
}

const (
	// egressToldEvery bounds how often the signaling nodes of a room are told what it sends, in case they must move it.
	egressToldEvery = 2 * time.Second
	// egressSettles is when a room is told of although not everybody in it is connected.
	egressSettles = reservationLife
)

// tellEgress tells the signaling nodes what the room sends, if that is known and news. Only Node.measure calls it. A busy room
// is told of at the next measurement.
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

// differ reports whether one amount is more than a quarter off the other.
func differ(a, b headroom.Egress) bool {
	return differs(a.BitsPerSecond, b.BitsPerSecond) || differs(a.PacketsPerSecond, b.PacketsPerSecond)
}

func differs(a, b uint64) bool { return max(a, b)-min(a, b) > max(a, b)/4 }

// loadWindow is the length of one measurement.
const loadWindow = time.Second

// meter turns a growing counter into a rate. It is not safe for concurrent use.
type meter struct {
	at    time.Time
	count headroom.Egress // bits and packets in total
	rate  headroom.Egress
}

// observe takes the counter's present value and gives the rate of the last window.
func (m *meter) observe(total headroom.Egress, now time.Time) headroom.Egress {
	elapsed := now.Sub(m.at)
	if m.at.IsZero() || elapsed <= 0 {
		m.at, m.count = now, total
		return m.rate
	}
	if elapsed < loadWindow/2 {
		return m.rate
	}
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
