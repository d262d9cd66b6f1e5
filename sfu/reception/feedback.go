package reception

import (
	"math"
	"time"

	"github.com/pion/rtcp"
)

// As libwebrtc: every 50 ms from about 200 kbit/s (busy packets) on. A voice alone gets 100 ms.
const (
	fastFeedback = 50 * time.Millisecond
	slowFeedback = 100 * time.Millisecond
	busy         = 10

	tick = 250 * time.Microsecond
	none = math.MinInt64 // did not arrive
)

// Reported arrivals are kept: a late packet is reported again with its successors.
type feedback struct {
	arrivals []int64 // ticks; by number modulo window
	newest   int64
	from     int64 // first number to report
	pending  int
	due      time.Duration
	last     time.Duration
	count    uint8
	source   uint32 // SSRC

	jumped    bool   // following is set
	following uint16 // after a jump back
}

// arrived keeps the first of two packets with one number.
func (f *feedback) arrived(sequence uint16, source uint32, at time.Duration) {
	if f.arrivals == nil {
		f.arrivals = make([]int64, window)
		f.last = at - slowFeedback
		f.begin(sequence)
	}
	step := int64(int16(sequence - uint16(f.newest)))
	switch {
	case step > 0:
		f.clear(f.newest+1, f.newest+step)
		f.newest += step
		f.from = max(f.from, f.newest-window+1)
	case step > -window:
	case f.jumped && sequence == f.following:
		f.begin(sequence)
		step = 0
	default:
		f.jumped, f.following = true, sequence+1
		return
	}
	f.jumped = false
	n := f.newest + min(step, 0)
	if f.arrivals[n&(window-1)] != none {
		return
	}
	f.arrivals[n&(window-1)] = int64(at / tick)
	f.from = min(f.from, n)
	f.source = source
	f.pending++
	switch {
	case f.newest-f.from >= window/2:
		f.due = at // before they are forgotten
	case f.pending == 1:
		f.due = max(f.last+slowFeedback, at+fastFeedback)
	case f.pending == busy:
		f.due = min(f.due, max(f.last+fastFeedback, at))
	}
}

func (f *feedback) begin(sequence uint16) {
	f.newest, f.from = int64(sequence), int64(sequence)
	f.pending = 0
	f.clear(f.newest-window+1, f.newest)
}

func (f *feedback) clear(first, last int64) {
	for n := max(first, last-window+1); n <= last; n++ {
		f.arrivals[n&(window-1)] = none
	}
}

func (f *feedback) report(sender uint32, at time.Duration, out []rtcp.Packet) []rtcp.Packet {
	for f.from <= f.newest {
		out = append(out, f.packet(sender))
		f.count++
	}
	f.pending, f.due, f.last = 0, never, at
	return out
}

// packet ends when full, or where arrivals are too far apart for 16 bits.
func (f *feedback) packet(sender uint32) *rtcp.RawPacket {
	reference := f.arrivals[f.firstArrival()&(window-1)] >> 8 // 64 ms each
	w := feedbackWriter{last: reference << 8}
	base := f.from
	for ; f.from <= f.newest && w.add(f.arrivals[f.from&(window-1)]); f.from++ {
	}
	return w.packet(sender, f.source, uint16(base), uint32(reference), f.count)
}

// firstArrival exists: the newest packet has arrived.
func (f *feedback) firstArrival() int64 {
	n := f.from
	for n < f.newest && f.arrivals[n&(window-1)] == none {
		n++
	}
	return n
}
