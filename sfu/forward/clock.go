package forward

import (
	"time"
)

// Seconds from 1900 to 1970.
const ntpEpochOffset = 2208988800

func ntpTime(t time.Time) uint64 {
	seconds := uint64(t.Unix() + ntpEpochOffset)
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

func fromNTPTime(ntp uint64) time.Time {
	return time.Unix(int64(ntp>>32)-ntpEpochOffset, int64((ntp&0xFFFFFFFF)*uint64(time.Second)>>32))
}

// wallClock is a wall clock that nobody sets: the machine's as it was when the clock began, and from there the monotonic one.
type wallClock struct{ begun time.Time }

func (c wallClock) at(t time.Time) time.Time { return c.begun.Round(0).Add(t.Sub(c.begun)) }

type peerClock struct {
	known  bool
	offset time.Duration // ours minus theirs
	path   punctuality
}

// observe follows slowly, because delay varies; after a step, at once.
func (c *peerClock) observe(theirs, ours time.Time) (late time.Duration, ok bool) {
	const step = time.Second
	offset := ours.Sub(theirs)
	difference := offset - c.offset
	if !c.known || difference.Abs() > step {
		c.known, c.offset = true, offset
		return 0, false
	}
	c.offset += difference / 16
	return max(difference, 0), true
}

// layerClock maps RTP timestamps to wallClock.
type layerClock struct {
	rate     uint32 // Hz
	known    bool
	reported bool      // by the publisher, not by arrival
	at       time.Time // by wallClock
	rtp      uint32
}

func (c *layerClock) report(at time.Time, rtp uint32) { c.known, c.at, c.rtp = true, at, rtp }

// Without reports arrival counts, again each minute: timestamps wrap.
func (c *layerClock) arrival(at time.Time, rtp uint32) {
	const again = time.Minute
	if !c.known || at.Sub(c.at) > again {
		c.report(at, rtp)
	}
}

func (c *layerClock) sampled(rtp uint32) time.Time { return c.at.Add(duration(rtp-c.rtp, c.rate)) }

func (c *layerClock) timestamp(t time.Time) uint32 {
	return c.rtp + ticks(t.Sub(c.at), c.rate)
}

// duration is negative for the upper half of the ticks.
func duration(ticks, rate uint32) time.Duration {
	return time.Duration(int64(int32(ticks)) * int64(time.Second) / int64(rate))
}

// ticks is modulo 2^32.
func ticks(d time.Duration, rate uint32) uint32 {
	whole, rest := d/time.Second, d%time.Second
	return uint32(int64(whole)*int64(rate) + int64(rest)*int64(rate)/int64(time.Second))
}
