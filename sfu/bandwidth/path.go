// Package bandwidth estimates what one transport towards a subscriber carries,
// from the receiver's transport-wide feedback
// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
//
// It promises to ask for less within about half a second of a queue that stands
// or of heavy loss, never to take what was sent for what could be sent (an
// application that sends little learns nothing of the path), and to look for more
// by short bounded probes only. Until a path has been congested once nothing is
// estimated and nothing is limited; an estimate made on another node for the same
// client is where this one begins. Numbering a packet allocates nothing.
//
// It knows neither RTP nor RTCP nor rooms, and has no clock but time.Now.
package bandwidth

import (
	"sync"
	"time"
)

// historyPackets is a power of two that divides the 16-bit sequence space, so a number keeps its place when the sequence wraps.
const historyPackets = 1024

// Path estimates the bandwidth of one transport towards a subscriber. It is safe for concurrent use.
type Path struct {
	onTarget func()
	begun    time.Time

	mu        sync.Mutex // guards the fields below
	sequence  uint16
	sentBytes uint64
	history   [historyPackets]sentPacket
	clock     remoteClock
	estimator estimator
	told      uint64
}

type sentPacket struct {
	at       time.Duration
	bytes    uint32
	sequence uint16
	pending  bool
}

// Arrival says whether one packet of a report was received, and when.
type Arrival struct {
	Received bool
	// Delta is the time since the previous received packet of the report. It may be negative.
	Delta time.Duration
}

// Report is one transport-wide feedback packet: Packets[i] tells about the packet with the sequence number Base+i.
type Report struct {
	Base uint16
	// Span is how many numbers the report covers, if those are more than Packets. A browser that moved here from another node
	// reports the numbers of both in one report, with all numbers between them.
	Span uint16
	// Reference is the receiver's time from which the first Delta counts: 24 bits in units of 64 ms.
	Reference uint32
	Packets   []Arrival
}

// NewPath returns a path whose target begins at start bits per second; 0 means unknown. Feedback calls onTarget, without holding a lock,
// when Target has changed.
func NewPath(start uint64, onTarget func()) *Path {
	p := &Path{onTarget: onTarget, begun: time.Now(), estimator: newEstimator(start, 0)}
	p.told = uint64(p.estimator.target)
	return p
}

// Target returns how much the path carries, in bits per second; 0 means that there is no limit.
func (p *Path) Target() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// Next returns the transport-wide sequence number for a packet that has the given number of bytes on the wire.
func (p *Path) Next(bytes int) uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sequence := p.sequence
	p.sequence++
	p.sentBytes += uint64(bytes)
	p.history[sequence%historyPackets] = sentPacket{
		at: time.Since(p.begun), bytes: uint32(bytes), sequence: sequence, pending: true,
	}
	return sequence
}

// Numbered returns the number that Next returns next.
func (p *Path) Numbered() uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sequence
}

// Continue has Next go on from a number of another node. It is called before the first packet.
func (p *Path) Continue(next uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sequence = next
}

// Feedback updates the target from a report. Reports must be passed in the order of their arrival.
func (p *Path) Feedback(r Report) {
	p.mu.Lock()
	if p.foreign(r) {
		p.mu.Unlock()
		return
	}
	arrived := p.clock.extend(r.Reference)
	for i, packet := range r.Packets {
		if packet.Received {
			arrived += packet.Delta
		}
		sequence := r.Base + uint16(i)
		sent := &p.history[sequence%historyPackets]
		if !sent.pending || sent.sequence != sequence {
			continue
		}
		sent.pending = false
		if packet.Received {
			p.estimator.received(sample{sequence: sequence, sent: sent.at, arrived: arrived, bytes: sent.bytes})
		} else {
			p.estimator.lost(sequence)
		}
	}
	p.estimator.settle(time.Since(p.begun))
	tell := p.news()
	p.mu.Unlock()
	if tell {
		p.onTarget()
	}
}

// foreign reports whether a report has numbers that this node has not sent. A browser that moved here continues the numbers of its former
// node; the path then continues after these numbers. The caller holds mu.
func (p *Path) foreign(r Report) bool {
	end := r.Base + max(r.Span, uint16(len(r.Packets)))
	if int16(end-p.sequence) <= 0 {
		return false
	}
	p.sequence = end
	p.clock = remoteClock{}
	p.renew()
	return true
}

// Moved is called when packets take another network path. The estimate then begins anew from the present target.
func (p *Path) Moved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew()
}

// renew forgets what was sent and measured, and keeps the target. The caller holds mu.
func (p *Path) renew() {
	clear(p.history[:])
	p.estimator = newEstimator(p.told, time.Since(p.begun))
}

// Probe returns how many bytes of padding to send now. The caller calls it every few tens of milliseconds, with the rate that it would
// like to send. urgent means that a picture is paused for lack of bandwidth.
func (p *Path) Probe(wantedBitsPerSecond uint64, urgent bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.estimator.probe(time.Since(p.begun), float64(wantedBitsPerSecond), urgent, p.sentBytes, p.sequence)
}

// news reports whether the target has changed by more than 5 % since it was last told, and notes the new target. The caller holds mu.
func (p *Path) news() bool {
	target := uint64(p.estimator.target)
	difference := max(target, p.told) - min(target, p.told)
	if difference*20 <= p.told {
		return false
	}
	p.told = target
	return true
}

// remoteClock extends the 24-bit reference time of reports, which wraps after twelve days.
type remoteClock struct {
	known bool
	// last is in units of 64 ms.
	last int64
}

func (c *remoteClock) extend(reference uint32) time.Duration {
	const (
		bits = 24
		half = 1 << (bits - 1)
		unit = 64 * time.Millisecond
	)
	value := int64(reference & (1<<bits - 1))
	if !c.known {
		c.known, c.last = true, value
		return time.Duration(c.last) * unit
	}
	step := (value - c.last) & (1<<bits - 1)
	if step >= half {
		step -= 1 << bits
	}
	c.last += step
	return time.Duration(c.last) * unit
}
