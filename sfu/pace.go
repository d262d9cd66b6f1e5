package sfu

import (
	pacing "golang.org/x/time/rate" // rate is a noun of ours

	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// What one encoding may send: several times what browsers do. The rest is dropped unread, before the room's queue.
const (
	// Opus sends at most 100.
	wildAudioPerSecond, wildAudioBurst = 500, 500
	// 38 Mbit/s of full packets; a large screen's keyframe has some 500.
	wildVideoPerSecond, wildVideoBurst = 4000, 2000
)

func newPace(kind forward.Kind) *pacing.Limiter {
	if kind == forward.KindAudio {
		return pacing.NewLimiter(wildAudioPerSecond, wildAudioBurst)
	}
	return pacing.NewLimiter(wildVideoPerSecond, wildVideoBurst)
}
