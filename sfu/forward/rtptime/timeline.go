package rtptime

import (
	"time"
)

const (
	// leastMissing is the least time that is added. Nobody notices less, and jitter looks the same.
	leastMissing = 80 * time.Millisecond
	// A busy browser may send sound late although it recorded the sound in time. Such sound is less than surelyMissing late, or no longer
	// late after catchesUp.
	surelyMissing = time.Second
	catchesUp     = 200 * time.Millisecond
	// LeastReported is the least missing time that a sender report is believed about. The reports of a busy browser are wrong by less.
	LeastReported = 300 * time.Millisecond
)

// Timeline adds to a sound's RTP timestamps the time that they lack. Chromium's stand still while a microphone is muted by
// replaceTrack(null), and while a busy browser records nothing. A receiver needs many sender reports to follow such a step, and plays
// sound and picture out of step meanwhile. Timestamps of pictures come from a clock and lack nothing.
type Timeline struct {
	transit Transit
	// added is the ticks that are added to packets from the extended sequence number from on, former to packets before that.
	added, former uint32
	from          uint32
	// arrived is when the packet with the number from arrived.
	arrived time.Time

	// lateSince is since when every packet was late; zero if the last one was not. leastLate is the least delay since.
	lateSince time.Time
	leastLate time.Duration
}

// Correct returns the corrected timestamp of a packet with an extended sequence number.
func (t *Timeline) Correct(sequence, timestamp uint32) uint32 {
	if int32(sequence-t.from) < 0 {
		return timestamp + t.former
	}
	return timestamp + t.added
}

// CorrectReport returns the corrected timestamp of a sender report. A report may have overtaken packets in our queues, so its time of
// arrival decides which correction it needs.
func (t *Timeline) CorrectReport(arrived time.Time, timestamp uint32) uint32 {
	if arrived.Before(t.arrived) {
		return timestamp + t.former
	}
	return timestamp + t.added
}

// Add adds missing time to the timestamps of packets from an extended sequence number on.
func (t *Timeline) Add(missing time.Duration, rate, from uint32, arrived time.Time) {
	t.former = t.added
	t.added += Ticks(missing, rate)
	t.from, t.arrived = from, arrived
	t.transit.delay -= missing
	t.lateSince = time.Time{}
}

// Observe adds what the timestamp of the newest packet lacks. A path keeps the order of packets, so a timestamp from long before the time
// up to which everything arrived is wrong. A stall of the path delays pictures as well, and adds nothing.
func (t *Timeline) Observe(sequence, timestamp, rate uint32, arrived time.Time, path *Punctuality) {
	const fresh = 150 * time.Millisecond
	late := t.transit.Late(arrived, timestamp, rate)
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
		t.Add(t.leastLate-path.late, rate, sequence, arrived)
	}
}

// Punctuality is what pictures and sender reports tell about the delay of a publisher's path.
type Punctuality struct {
	// Whatever was sent before complete has arrived: a packet that was sent then came, and it was late by this much.
	complete time.Time
	late     time.Duration
}

// Note takes a packet that arrived with a delay beyond the usual one.
func (p *Punctuality) Note(arrived time.Time, late time.Duration) {
	if sent := arrived.Add(-late); sent.After(p.complete) {
		p.complete, p.late = sent, late
	}
}

// Transit compares how long packets travelled, by their timestamps.
type Transit struct {
	known bool
	// The newest packet. delay is how much longer than the first packet it travelled.
	arrived   time.Time
	timestamp uint32
	delay     time.Duration
	// lowest is the least delay in the present window, before that in the window before it.
	lowest, before time.Duration
	window         time.Time
}

// Late returns how much longer than the fastest of the last seconds the newest packet travelled.
func (t *Transit) Late(arrived time.Time, timestamp, rate uint32) time.Duration {
	const window = 2 * time.Second
	if !t.known {
		*t = Transit{known: true, arrived: arrived, timestamp: timestamp, window: arrived}
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
