package rtptime

import (
	"time"
)

// NTPEpochOffset is the seconds from 1900, where NTP time begins, to 1970.
const NTPEpochOffset = 2208988800

// NTP returns the 64-bit NTP timestamp of a time (RFC 3550 section 4).
func NTP(t time.Time) uint64 {
	seconds := uint64(t.Unix() + NTPEpochOffset)
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

// FromNTP returns the time of a 64-bit NTP timestamp.
func FromNTP(ntp uint64) time.Time {
	return time.Unix(int64(ntp>>32)-NTPEpochOffset, int64((ntp&0xFFFFFFFF)*uint64(time.Second)>>32))
}

// WallClock is a wall clock that nobody sets. It starts with the machine's wall clock at Begun and then follows the monotonic clock, so
// that setting the machine's clock does not move the timestamps of streams.
type WallClock struct{ Begun time.Time }

// At returns what the clock shows at t, which must have a monotonic reading.
func (c WallClock) At(t time.Time) time.Time { return c.Begun.Round(0).Add(t.Sub(c.Begun)) }

// PeerClock follows a publisher's wall clock by its sender reports.
type PeerClock struct {
	known bool
	// Offset is our wall clock minus theirs.
	Offset time.Duration
	// Path tells how late the publisher's packets are.
	Path Punctuality
}

// Observe takes a sender report of the time theirs, which arrived at ours. The offset follows by a sixteenth of the difference, because
// the delay of reports varies. If somebody set the publisher's clock, it follows at once, and ok is false. late is how much longer than
// usual the report travelled.
func (c *PeerClock) Observe(theirs, ours time.Time) (late time.Duration, ok bool) {
	const step = time.Second
	offset := ours.Sub(theirs)
	difference := offset - c.Offset
	if !c.known || difference.Abs() > step {
		c.known, c.Offset = true, offset
		return 0, false
	}
	c.Offset += difference / 16
	return max(difference, 0), true
}

// StreamClock maps the RTP timestamps of one track to the time of a WallClock.
type StreamClock struct {
	Rate  uint32 // Hz
	known bool
	// Reported is set by the caller once the publisher, not the arrival of a packet, said what the clock shows.
	Reported bool
	// The timestamp rtp was sampled at the time at.
	at  time.Time
	rtp uint32
}

// Report sets the clock: the timestamp rtp was sampled at the time at.
func (c *StreamClock) Report(at time.Time, rtp uint32) { c.known, c.at, c.rtp = true, at, rtp }

// Arrival sets the clock by the arrival of a packet, if nothing was reported for a minute. Waiting longer would let the difference of two
// timestamps wrap.
func (c *StreamClock) Arrival(at time.Time, rtp uint32) {
	const again = time.Minute
	if !c.known || at.Sub(c.at) > again {
		c.Report(at, rtp)
	}
}

// Sampled returns when the sample of a timestamp was recorded.
func (c *StreamClock) Sampled(rtp uint32) time.Time { return c.at.Add(duration(rtp-c.rtp, c.Rate)) }

// Timestamp is the inverse of Sampled.
func (c *StreamClock) Timestamp(t time.Time) uint32 {
	return c.rtp + Ticks(t.Sub(c.at), c.Rate)
}

// duration takes the upper half of the ticks for negative numbers.
func duration(ticks, rate uint32) time.Duration {
	return time.Duration(int64(int32(ticks)) * int64(time.Second) / int64(rate))
}

// Ticks returns a duration in units of a clock rate, modulo 2^32. It computes whole seconds apart, so that no product overflows.
func Ticks(d time.Duration, rate uint32) uint32 {
	whole, rest := d/time.Second, d%time.Second
	return uint32(int64(whole)*int64(rate) + int64(rest)*int64(rate)/int64(time.Second))
}
