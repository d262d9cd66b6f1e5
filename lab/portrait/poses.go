package portrait

import (
	"math"
	"slices"
	"time"
)

const (
	sways    = 2 // positions of the head on each side of the middle
	swayStep = 0.006
	mouths   = 4 // ways to hold the mouth
)

// poses are all that a clip has. The first is its keyframe; the others are all poses, that of the keyframe among them.
//
//nolint:gochecknoglobals // a table that nobody changes
var poses = func() []pose {
	all := []pose{{}}
	for sway := -sways; sway <= sways; sway++ {
		for mouth := range mouths {
			all = append(all, pose{sway: sway, mouth: mouth})
		}
		all = append(all, pose{sway: sway, blink: true})
	}
	return all
}()

// Poses is how many frames a clip has.
const Poses = 1 + (2*sways+1)*(mouths+1)

// Periods of what a person does while nobody looks.
const (
	swayPeriod  = 5 * time.Second
	blinkPeriod = 3700 * time.Millisecond
	blinkTime   = 140 * time.Millisecond
	mouthTime   = 130 * time.Millisecond // one way to hold the mouth
)

// At returns the number of a person's pose at a time, never that of the keyframe. The mouth of a speaker moves.
func At(person int, at time.Duration, speaks bool) int {
	at += time.Duration(person) * 1300 * time.Millisecond
	p := pose{sway: int(math.Round(sways * math.Sin(2*math.Pi*float64(at%swayPeriod)/float64(swayPeriod))))}
	switch {
	case speaks:
		// The order of the mouths repeats after 11 of them.
		p.mouth = [...]int{1, 2, 1, 3, 2, 0, 1, 3, 1, 2, 0}[int(at/mouthTime)%11]
	case at%blinkPeriod < blinkTime:
		p.blink = true
	}
	return 1 + slices.Index(poses[1:], p)
}
