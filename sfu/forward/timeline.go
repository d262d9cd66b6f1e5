package forward

import (
	"time"
)

const (
	// Sound whose timestamps lack less time than this is left as it is: nobody notices it, and jitter looks the same.
	leastMissing = 80 * time.Millisecond
	// A busy browser may send sound late that it recorded in time. It has not so much of it, or catches up so soon.
	surelyMissing = time.Second
	catchesUp     = 200 * time.Millisecond
	// The reports of a busy browser are wrong by less than this.
	leastReported = 300 * time.Millisecond
)

// timeline adds to a sound's RTP timestamps the time that they lack. Chromium's stand still while a microphone is muted by
// replaceTrack(null), and while a busy browser records nothing. A receiver needs many sender reports to follow such a step, and plays
// sound and picture out of step meanwhile. Timestamps of pictures come from a clock and lack nothing.
type timeline struct {
	transit transit
	// added is in ticks, for packets from the extended number from on; former is for those before it.
	added, former uint32
	from          uint32
	arrived       time.Time // of from

	lateSince time.Time // zero: it is not
	leastLate time.Duration
}

func (t *timeline) correct(sequence, timestamp uint32) uint32 {
	if int32(sequence-t.from) < 0 {
		return timestamp + t.former
	}
	return timestamp + t.added
}

// correctReport is for a timestamp of a sender report, which may have overtaken a packet in our queues.
func (t *timeline) correctReport(arrived time.Time, timestamp uint32) uint32 {
	if arrived.Before(t.arrived) {
		return timestamp + t.former
	}
	return timestamp + t.added
}

func (t *timeline) add(missing time.Duration, rate, from uint32, arrived time.Time) {
	t.former = t.added
	t.added += ticks(missing, rate)
	t.from, t.arrived = from, arrived
	t.transit.delay -= missing
	t.lateSince = time.Time{}
}

// observe adds what the timestamp of a newest packet lacks. A path keeps the order of packets, so a timestamp from long before
// path.complete is wrong. A stall of the path delays pictures as well, and adds nothing.
func (t *timeline) observe(sequence, timestamp, rate uint32, arrived time.Time, path *punctuality) {
	const fresh = 150 * time.Millisecond
	late := t.transit.late(arrived, timestamp, rate)
	if late < leastMissing {
		t.lateSince = time.Time{}
		return
	}
	if t.lateSince.IsZero() {
		t.lateSince, t.leastLate = arrived, late
	}
	t.leastLate = min(t.leastLate, late)
	uncertain := max(arrived.Sub(path.complete), 0)
	sure := late >= surelyMissing || arrived.Sub(t.lateSince) >= catchesUp
	if sure && !path.complete.IsZero() && uncertain <= fresh && late-uncertain >= leastMissing {
		t.add(t.leastLate-path.late, rate, sequence, arrived)
	}
}

// punctuality is what pictures and reports tell of a publisher's path.
type punctuality struct {
	// What was sent before complete has arrived, as something shows that came late by so much.
	complete time.Time
	late     time.Duration
}

func (p *punctuality) note(arrived time.Time, late time.Duration) {
	if sent := arrived.Add(-late); sent.After(p.complete) {
		p.complete, p.late = sent, late
	}
}

// transit compares how long packets travelled, by their timestamps.
type transit struct {
	known     bool
	arrived   time.Time // of the newest packet
	timestamp uint32
	delay     time.Duration // of the newest packet, beyond the first one's
	// lowest is the least delay of this window, before of the last one.
	lowest, before time.Duration
	window         time.Time
}

// late returns how much longer than the fastest of the last seconds the newest packet travelled.
func (t *transit) late(arrived time.Time, timestamp, rate uint32) time.Duration {
	const window = 2 * time.Second
	if !t.known {
		*t = transit{known: true, arrived: arrived, timestamp: timestamp, window: arrived}
	}
	t.delay += arrived.Sub(t.arrived) - duration(timestamp-t.timestamp, rate)
	t.arrived, t.timestamp = arrived, timestamp
	late := t.delay - min(t.lowest, t.before)
	if arrived.Sub(t.window) > window {
		t.before, t.lowest, t.window = t.lowest, t.delay, arrived
	}
	t.lowest = min(t.lowest, t.delay)
	return max(late, 0)
}
