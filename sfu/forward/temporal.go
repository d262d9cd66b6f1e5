package forward

import (
	"time"
)

// No picture needs one of a higher temporal layer, so a narrow path loses those first.
const (
	allTemporal = 0xFF
	// A layer with less of the rate is not worth leaving out.
	leastShare = 0.02
	// Limits remembered for late packets.
	keptLimits = 4
	// How long a slot waits to rise before it asks for a keyframe.
	risePatience = 2 * time.Second
)

type temporal struct {
	wanted uint8 // the highest wanted, or allTemporal
	limits [keptLimits]temporalLimit
	opened bool      // the next picture may be of any temporal layer
	waits  time.Time // since when it wants more than is decodable
}

type temporalLimit struct {
	from    uint32
	highest uint8
}

func (t *temporal) begin(sequence uint32) {
	for i := range t.limits {
		t.limits[i] = temporalLimit{sequence, t.wanted}
	}
	t.opened, t.waits = false, time.Time{}
}

// drops reports whether a packet is left out; ahead: no later one came before.
func (t *temporal) drops(p *Packet, ahead bool) bool {
	if p.picture.Begins && ahead {
		t.turn(p)
	}
	for _, limit := range t.limits {
		if int32(p.sequence-limit.from) >= 0 {
			return p.picture.Temporal > limit.highest
		}
	}
	return false
}

// turn moves the limit at a picture's first packet p. Down: always. Up: at a keyframe, at a picture of the next layer
// that needs only the lowest (VP8), or after one over which nothing higher reaches (VP9).
func (t *temporal) turn(p *Packet) {
	now, picture := t.limits[0].highest, &p.picture
	next := now
	switch {
	case t.wanted < now || picture.Keyframe || t.opened:
		next = t.wanted
	case t.wanted > now && picture.Synced && picture.Temporal == now+1:
		next = picture.Temporal
	}
	t.opened = picture.Opens && picture.Temporal <= next
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

func (t *temporal) stuck(l *Layer, now time.Time) bool {
	if t.waits.IsZero() || now.Sub(t.waits) < risePatience || l.highestTemporal() <= t.limits[0].highest {
		return false
	}
	t.waits = now
	return true
}
