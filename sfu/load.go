package sfu

import (
	"time"
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
}

// rate is an amount of egress in one second.
type rate struct {
	bits, packets uint64
}

func (r rate) plus(o rate) rate { return rate{r.bits + o.bits, r.packets + o.packets} }

func (r rate) max(o rate) rate { return rate{max(r.bits, o.bits), max(r.packets, o.packets)} }

func (r rate) fits(ceiling rate) bool { return r.bits <= ceiling.bits && r.packets <= ceiling.packets }

// times returns n streams of r; n is bounded by maxExpectedSize squared.
func (r rate) times(n uint64) rate { return rate{r.bits * n, r.packets * n} }

// What a room is expected to send: the figures by which rooms are placed (see
// orchestrator.DefaultConfig), so that both sides judge headroom alike.
const (
	videoBitsPerSecond    = 1_500_000 // 720p-class, in packets of 1200 bytes
	videoPacketsPerSecond = 160
	audioBitsPerSecond    = 40_000 // Opus at 20 ms, overhead included
	audioPacketsPerSecond = 50
	expectedVideoSlots    = 9
	expectedAudioSlots    = 3
	defaultExpectedSize   = 4
	maxExpectedSize       = 100_000 // beyond it the cost would say nothing more
)

// expectedCost is what a room of n is expected to send.
func expectedCost(n uint32) rate {
	size := uint64(n)
	if size == 0 {
		size = defaultExpectedSize
	}
	size = min(max(size, 2), maxExpectedSize)
	video := rate{videoBitsPerSecond, videoPacketsPerSecond}.times(min(size, expectedVideoSlots) * (size - 1))
	return video.plus(rate{audioBitsPerSecond, audioPacketsPerSecond}.times(min(size, expectedAudioSlots) * (size - 1)))
}

// reservationLife is how long a room's expected cost counts: it falls to nothing
// in a straight line, while people arrive and what they really send is measured.
const reservationLife = 30 * time.Second

// reserved is what is left of a room's expected cost at an age.
func reserved(cost rate, age time.Duration) rate {
	if age >= reservationLife {
		return rate{}
	}
	left := uint64((reservationLife - max(age, 0)) / time.Millisecond)
	whole := uint64(reservationLife / time.Millisecond)
	return rate{cost.bits / whole * left, cost.packets * left / whole}
}

// idleTenth: a node below a tenth of its ceiling refuses no room, so that a room
// larger than any ceiling still finds a place on an empty node.
const idleTenth = 10

// headroom reports whether a room of the given cost may be opened on top of load.
func headroom(load, cost, ceiling rate) bool {
	if load.plus(cost).fits(ceiling) {
		return true
	}
	return load.bits < ceiling.bits/idleTenth && load.packets < ceiling.packets/idleTenth
}

// loadWindow is the length of one measurement.
const loadWindow = time.Second

// meter turns a growing counter into a rate. It is not safe for concurrent use.
type meter struct {
	at    time.Time
	count rate // bits and packets in total
	rate  rate
}

// observe takes the counter's present value and gives the rate of the last window.
func (m *meter) observe(total rate, now time.Time) rate {
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
	m.rate = rate{perSecond(total.bits, m.count.bits), perSecond(total.packets, m.count.packets)}
	m.at, m.count = now, total
	return m.rate
}
