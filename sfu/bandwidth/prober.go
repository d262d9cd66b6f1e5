package bandwidth

import "time"

// A probe sends padding for probeTime, at a rate of up to probeFactor times the target, to learn whether the path carries more.
const (
	probeTime   = 150 * time.Millisecond
	probeFactor = 2.0
	probeMargin = 1.2
	// probeTrust is the share of the measured rate that becomes the target.
	probeTrust = 0.95
	// A probe that finds less than probeGain times the target has failed.
	probeGain  = 1.05
	probeWait  = time.Second
	probeAhead = 20 * time.Millisecond

	// The pause after a successful probe is probeAgain. After failed probes the pause doubles, from probeFirst up to probeLast.
	probeAgain = time.Second
	probeFirst = 3 * time.Second
	probeLast  = 8 * time.Second

	probeUrgent = 2 * time.Second
	urgentRate  = 250_000

	leastProbePackets = 8
	mostProbeLoss     = 0.1

	probeBurst = 16 << 10
)

type probeState uint8

const (
	probeIdle probeState = iota
	probeActive
	probeWaiting
)

type prober struct {
	state   probeState
	next    time.Duration
	failed  time.Duration
	backoff time.Duration

	began, ended time.Duration
	rate         float64
	before       uint64
	first, last  uint16
	seen         window
	complete     bool
}

func newProber() prober { return prober{backoff: probeFirst} }

func (p *prober) putOff(now time.Duration) {
	if p.state != probeIdle {
		p.state = probeIdle
		p.fail(now)
		return
	}
	p.next, p.failed = max(p.next, now+p.backoff), now
}

func (p *prober) fail(now time.Duration) {
	p.next, p.failed = now+p.backoff, now
	p.backoff = min(2*p.backoff, probeLast)
}

// padding returns how many bytes of padding to send now. It begins a probe when the pause is over. An urgent probe may begin earlier and
// use a higher rate.
func (p *prober) padding(now time.Duration, wanted, target float64, urgent bool, sentBytes uint64, sequence uint16) int {
	switch p.state {
	case probeIdle:
		next, most := p.next, target*probeFactor
		if urgent {
			next, most = min(next, p.failed+max(p.backoff/2, probeUrgent)), max(most, urgentRate)
		}
		if now < next {
			return 0
		}
		*p = prober{
			state: probeActive, backoff: p.backoff, began: now, ended: now + probeTime, before: sentBytes, first: sequence,
			rate: min(wanted*probeMargin, most),
		}
	case probeActive:
		if now-p.began >= probeTime {
			p.state, p.ended, p.last = probeWaiting, now, sequence-1
			return 0
		}
	case probeWaiting:
		return 0
	}
	due := p.rate / 8 * (now - p.began + probeAhead).Seconds()
	return min(max(int(due)-int(sentBytes-p.before), 0), probeBurst)
}

func (p *prober) concerns(sequence uint16) bool {
	return p.state != probeIdle && int16(sequence-p.first) >= 0 && (p.state == probeActive || int16(p.last-sequence) >= 0)
}

func (p *prober) received(s sample) {
	if p.concerns(s.sequence) {
		p.seen.add(s)
	} else if p.state == probeWaiting && int16(s.sequence-p.last) > 0 {
		p.complete = true
	}
	if p.state == probeWaiting && s.sequence == p.last {
		p.complete = true
	}
}

func (p *prober) lost(sequence uint16) {
	if p.concerns(sequence) {
		p.seen.losses++
	}
}

// result returns the rate that a probe found, in bits per second, and whether a probe has ended. The rate is 0 if too few packets
// arrived or too many were lost.
func (p *prober) result(now time.Duration, target float64) (float64, bool) {
	if p.state != probeWaiting || !p.complete && now-p.ended < probeWait {
		return 0, false
	}
	p.state = probeIdle
	w := &p.seen
	found := w.rate() * probeTrust
	lossy := float64(w.losses) > mostProbeLoss*float64(w.packets+w.losses)
	if w.packets < leastProbePackets || lossy {
		p.fail(now)
		return 0, true
	}
	if found < probeGain*target {
		p.fail(now)
		return found, true
	}
	p.next, p.backoff = now+probeAgain, probeFirst
	return found, true
}
