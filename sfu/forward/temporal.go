package forward

import "time"

// A publisher's pictures may be in temporal layers, of which none needs a higher one. Where a path is narrow the highest are left out
// before a smaller picture is shown.
const (
	// maxTemporal is the highest that is told apart; what is above counts as it. Browsers use 0 to 2.
	maxTemporal = 3
	allTemporal = 0xFF
	// leastShare is which part of what is sent a temporal layer must be to be worth leaving out.
	leastShare = 0.02
	// keptLimits is how many changes of the limit are remembered, for packets that come late.
	keptLimits = 4
	// risePatience is how long a slot waits for a picture from which on more can be decoded, before it asks for a keyframe.
	risePatience = 2 * time.Second
)

// temporal is how much a slot forwards of the layer that it shows. It changes between pictures only.
type temporal struct {
	wanted uint8 // the highest temporal layer, or allTemporal
	limits [keptLimits]temporalLimit
	opened bool      // the picture before lets the next one be of any temporal layer
	waits  time.Time // since when more is wanted than can be decoded; zero: it is not
}

// temporalLimit is the highest temporal layer that is forwarded, from a sequence number on.
type temporalLimit struct {
	from    uint32
	highest uint8
}

// begin is called at the keyframe with which a layer begins.
func (t *temporal) begin(sequence uint32) {
	for i := range t.limits {
		t.limits[i] = temporalLimit{sequence, t.wanted}
	}
	t.opened, t.waits = false, time.Time{}
}

// drops reports whether a packet is left out; ahead says that it is beyond all packets before.
func (t *temporal) drops(p *Packet, ahead bool) bool {
	if p.picture.begins && ahead {
		t.turn(p)
	}
	for _, limit := range t.limits {
		if int32(p.sequence-limit.from) >= 0 {
			return p.picture.temporal > limit.highest
		}
	}
	return false
}

// turn moves the limit towards what is wanted, as far as the picture that begins with p allows: down always; up at a keyframe,
// with a picture of the next temporal layer that needs the lowest only (VP8), or behind one that nothing higher reaches over (VP9).
func (t *temporal) turn(p *Packet) {
	now, picture := t.limits[0].highest, &p.picture
	next := now
	switch {
	case t.wanted < now || picture.keyframe || t.opened:
		next = t.wanted
	case t.wanted > now && picture.synced && picture.temporal == now+1:
		next = picture.temporal
	}
	t.opened = picture.opens && picture.temporal <= next
	switch {
	case next >= t.wanted:
		t.waits = time.Time{}
	case t.waits.IsZero() || next != now:
		t.waits = p.arrived
	}
	if next != now {
		copy(t.limits[1:], t.limits[:])
		t.limits[0] = temporalLimit{p.sequence, next}
	}
}

// stuck reports, once in risePatience, that more of the layer is wanted than can be decoded without a keyframe.
func (t *temporal) stuck(l *Layer, now time.Time) bool {
	if t.waits.IsZero() || now.Sub(t.waits) < risePatience || l.highestTemporal() <= t.limits[0].highest {
		return false
	}
	t.waits = now
	return true
}

// highestTemporal is the highest temporal layer that is worth leaving out, 0 for none.
func (l *Layer) highestTemporal() uint8 {
	for i := len(l.upper) - 1; i >= 0; i-- {
		if u := &l.upper[i]; u.known && u.bits > leastShare*l.rate.bits {
			return uint8(i + 1)
		}
	}
	return 0
}

// bitsUpTo is what the layer sends in a second up to a temporal layer.
func (l *Layer) bitsUpTo(highest uint8) uint64 {
	bits := l.rate.bits
	for i := int(highest); i < len(l.upper); i++ {
		bits -= l.upper[i].bits
	}
	return uint64(max(bits, 0))
}

// withTemporal appends the rungs of a ladder, before each what it is without its highest temporal layer, and before the lowest also
// what it is without more of them.
func withTemporal(all, rungs []layerChoice) []layerChoice {
	for i, c := range rungs {
		if c.alive && c.layer != nil {
			top := c.highestTemporal()
			for highest := range top {
				if i > 0 && highest != top-1 {
					continue
				}
				less := c
				less.upTo, less.bits = highest, c.bitsUpTo(highest)
				all = append(all, less)
			}
		}
		all = append(all, c)
	}
	return all
}
