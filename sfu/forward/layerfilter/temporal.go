package layerfilter

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

// AllTemporal is no limit of temporal layers.
const AllTemporal = 0xFF

const (
	// keptLimits is how many limits are remembered for late packets.
	keptLimits = 4
	// risePatience is how long a slot waits for a chance to forward more before it asks for a keyframe.
	risePatience = 2 * time.Second
)

// Temporal selects pictures of VP8 and VP9 by their temporal layers. No picture needs one of a higher layer, so that a narrow path loses
// those first.
type Temporal struct {
	// Wanted is the highest layer that the caller wants, or AllTemporal.
	Wanted uint8
	// limits are the highest forwarded layers and from which packet on they hold, newest first.
	limits [keptLimits]temporalLimit
	// opened lets the next picture be of any temporal layer.
	opened bool
	// waits is since when more is wanted than can be decoded; zero if that is not so.
	waits time.Time
}

type temporalLimit struct {
	from    uint32
	highest uint8
}

// Begin forgets the limits, because packets of another layer follow from this number on.
func (t *Temporal) Begin(sequence uint32) {
	for i := range t.limits {
		t.limits[i] = temporalLimit{sequence, t.Wanted}
	}
	t.opened, t.waits = false, time.Time{}
}

// Drops reports whether a packet of a picture is left out. ahead says that no later packet came before this one. All packets of a picture get
// the same answer.
func (t *Temporal) Drops(picture *parse.Picture, sequence uint32, arrived time.Time, ahead bool) bool {
	if picture.Begins && ahead {
		t.beginPicture(picture, sequence, arrived)
	}
	for _, limit := range t.limits {
		if int32(sequence-limit.from) >= 0 {
			return picture.Temporal > limit.highest
		}
	}
	return false
}

// beginPicture moves the limit at the first packet of a picture. It moves down at any picture. It moves up at a keyframe, at a picture of the
// next layer that needs only the lowest layer (VP8), or after a picture over which nothing higher reaches back (VP9).
func (t *Temporal) beginPicture(picture *parse.Picture, sequence uint32, arrived time.Time) {
	now := t.limits[0].highest
	next := now
	switch {
	case t.Wanted < now || picture.Keyframe || t.opened:
		next = t.Wanted
	case t.Wanted > now && picture.Synced && picture.Temporal == now+1:
		next = picture.Temporal
	}
	t.opened = picture.Opens && picture.Temporal <= next
	switch {
	case next >= t.Wanted:
		t.waits = time.Time{}
	case t.waits.IsZero() || next != now:
		t.waits = arrived
	}
	if next != now {
		copy(t.limits[1:], t.limits[:])
		t.limits[0] = temporalLimit{sequence, next}
	}
}

// Stuck reports whether a keyframe should be asked for, because the limit waited in vain to rise. It does so once in risePatience, and only
// if the layer has more temporal layers than are forwarded: available returns its highest one.
func (t *Temporal) Stuck(now time.Time, available func() uint8) bool {
	if t.waits.IsZero() || now.Sub(t.waits) < risePatience || available() <= t.limits[0].highest {
		return false
	}
	t.waits = now
	return true
}

// Limit is the highest temporal layer that is forwarded now.
func (t *Temporal) Limit() uint8 { return t.limits[0].highest }
