package sfu

import (
	pacing "golang.org/x/time/rate" // rate is a noun of ours

	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// What one encoding of a publisher may send: several times what a browser does. The rest is dropped unread, so that it does not fill
// the room's queue.
const (
	// Opus has 50 packets a second, 100 at most.
	wildAudioPerSecond, wildAudioBurst = 500, 500
	// 4000 full packets a second are 38 Mbit/s; a keyframe of a large screen has some 500.
	wildVideoPerSecond, wildVideoBurst = 4000, 2000
)

// newPace bounds the packets of one encoding.
func newPace(kind forward.Kind) *pacing.Limiter {
	if kind == forward.KindAudio {
		return pacing.NewLimiter(wildAudioPerSecond, wildAudioBurst)
	}
	return pacing.NewLimiter(wildVideoPerSecond, wildVideoBurst)
}
