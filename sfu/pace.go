package sfu

import (
	pacing "golang.org/x/time/rate" // rate means a sending rate here

	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// What one encoding may send: several times what browsers do. The rest is dropped before the room's queue.
const (
	// Opus sends at most 100.
	wildAudioPerSecond, wildAudioBurst = 500, 500
	// 38 Mbit/s.
	wildVideoPerSecond, wildVideoBurst = 4000, 2000
)

func newPace(kind forward.Kind) *pacing.Limiter {
	if kind == forward.KindAudio {
		return pacing.NewLimiter(wildAudioPerSecond, wildAudioBurst)
	}
	return pacing.NewLimiter(wildVideoPerSecond, wildVideoBurst)
}
