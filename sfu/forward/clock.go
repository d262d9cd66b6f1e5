package forward

import "time"

// ntpEpochOffset is the time from the NTP epoch (1900) to the Unix epoch, in seconds.
const ntpEpochOffset = 2208988800

func ntpTime(t time.Time) uint64 {
	seconds := uint64(t.Unix() + ntpEpochOffset)
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

func fromNTPTime(ntp uint64) time.Time {
	return time.Unix(int64(ntp>>32)-ntpEpochOffset, int64((ntp&0xFFFFFFFF)*uint64(time.Second)>>32))
}

// RoundTrip is how long a sender report of ours and the report that answers it were on their way: lsr is the middle 32 bits of the
// report's NTP time, delay how long the receiver waited, both in units of 1/65536 s (RFC 3550 section 6.4.1). It is false for
// what no path has.
func RoundTrip(arrived time.Time, lsr, delay uint32) (time.Duration, bool) {
	const most = 10 * time.Second
	units := uint32(ntpTime(arrived)>>16) - lsr - delay
	rtt := time.Duration(units) * time.Second >> 16
	return rtt, rtt < most
}

// peerClock maps one publisher's wall clock to ours. Audio and video of that
// publisher share it, so that the sender reports written from it keep them in step.
type peerClock struct {
	known  bool
	offset time.Duration // ours minus theirs, network delay included
}

// observe takes in one sender report. Delay varies, the clocks hardly: the
// offset follows slowly, and jumps only when somebody set a clock.
func (c *peerClock) observe(theirs, ours time.Time) {
	const step = time.Second
	offset := ours.Sub(theirs)
	difference := offset - c.offset
	if !c.known || difference.Abs() > step {
		c.known, c.offset = true, offset
		return
	}
	c.offset += difference / 16
}

// layerClock maps the RTP timestamps of one layer to our wall clock: by its
// sender reports once there is one, before that by the arrival of its packets.
type layerClock struct {
	rate     uint32 // Hz
	reported bool
	known    bool
	at       time.Time // our time at which the timestamp was, or would have been, sampled
	rtp      uint32
}

func (c *layerClock) report(at time.Time, rtp uint32) {
	c.reported, c.known = true, true
	c.at, c.rtp = at, rtp
}

// arrival anchors the clock until the first report. It anchors anew now and
// then, for 32-bit timestamps turn over and the clocks drift apart.
func (c *layerClock) arrival(at time.Time, rtp uint32) {
	const again = time.Minute
	if !c.known || at.Sub(c.at) > again {
		c.known = true
		c.at, c.rtp = at, rtp
	}
}

// sampled is our time at which the timestamp was sampled.
func (c *layerClock) sampled(rtp uint32) time.Time {
	ticks := int64(int32(rtp - c.rtp))
	return c.at.Add(time.Duration(ticks * int64(time.Second) / int64(c.rate)))
}

// timestamp is the RTP timestamp of something sampled at our time t.
func (c *layerClock) timestamp(t time.Time) uint32 {
	return c.rtp + ticks(t.Sub(c.at), c.rate)
}

// ticks turns a duration into units of an RTP clock, modulo 2^32.
func ticks(d time.Duration, rate uint32) uint32 {
	whole, rest := d/time.Second, d%time.Second
	return uint32(int64(whole)*int64(rate) + int64(rest)*int64(rate)/int64(time.Second))
}
