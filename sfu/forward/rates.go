package forward

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
	"github.com/holdfast-rtc/holdfast/sfu/forward/layerfilter"
)

// assumedBits is the rate that is assumed of a layer before it is measured, per squared line: 2 Mbit/s at 720 lines.
const assumedBits = 4

type rateMeter struct {
	bytes uint64
	// bits is per second, smoothed.
	bits float64
	// begun: the next measurement covers a whole interval.
	begun bool
	known bool
	// young is the weight of the last measurement. It falls, so that the first few measurements count alike.
	young float64
}

func (m *rateMeter) add(packetBytes int) {
	// What SRTP, UDP and IP add. The length has the publisher's RTP header, which is about as long as ours.
	const added = wireOverhead - 20
	m.bytes += uint64(packetBytes + added)
}

func (m *rateMeter) measure(elapsed time.Duration) {
	const weight = 0.25
	if elapsed <= 0 || elapsed > 10*measureInterval {
		// The process slept, so that the interval means nothing.
		m.bytes = 0
		return
	}
	bits := float64(m.bytes*8) / elapsed.Seconds()
	switch {
	case m.known:
		m.young = max(m.young/(1+m.young), weight)
		m.bits += m.young * (bits - m.bits)
	case m.begun:
		m.known, m.bits, m.young = true, bits, 1
	default:
		m.begun = m.bytes > 0
	}
	m.bytes = 0
}

// A temporal layer with less of the rate is not worth leaving out.
const leastShare = 0.02

type description struct {
	structure *descriptor.Structure
	active    uint32
	rates     []rateMeter
	// arranged is when layers were last chosen without waiting for a tick.
	arranged time.Time
}

// receive takes note of a packet's descriptor. newest: no later packet came before. It reports whether the layers in the stream changed.
func (d *description) receive(p *Packet, newest bool) (changed bool) {
	f := &p.frame
	if !f.Known {
		return false
	}
	if newest && (f.Structure != d.structure || f.Active != d.active) {
		if d.structure == nil || f.Structure.TargetCount() != len(d.rates) {
			d.rates = make([]rateMeter, f.Structure.TargetCount())
		}
		d.structure, d.active, changed = f.Structure, f.Active, true
	}
	if f.Structure == d.structure {
		for target := range descriptor.Targets(f.Present) {
			d.rates[target].add(p.length)
		}
	}
	return changed
}

func (d *description) measure(elapsed time.Duration) {
	for i := range d.rates {
		d.rates[i].measure(elapsed)
	}
}

// target returns the decode target of a spatial layer that has the most temporal layers up to a limit.
func (d *description) target(spatial, temporal uint8) (int, bool) {
	best, found := 0, false
	for i := range descriptor.Targets(d.active) {
		l := d.structure.Target(i)
		if (spatial == layerfilter.AllSpatial || l.Spatial == spatial) && l.Temporal <= temporal && (!found || layerfilter.Higher(l, d.structure.Target(best))) {
			best, found = i, true
		}
	}
	return best, found
}
