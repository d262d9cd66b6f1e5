package peer

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Video is what kind of video a peer sends.
type Video string

// The kinds of video.
const (
	VideoLight     Video = "light"     // one layer of 10 packets/s: load on the cluster with little on its maker
	VideoSparse    Video = "sparse"    // one layer of 4 packets/s, and sound in frames of 60 ms: hundreds of people on two cores
	VideoSimulcast Video = "simulcast" // three layers as a camera of 1280x720 gives them
	VideoOff       Video = "off"       // audio alone
	VideoNone      Video = "none"      // no connection at all: signaling only
)

// Valid reports whether the kind of video is known.
func (v Video) Valid() bool {
	return slices.Contains([]Video{VideoLight, VideoSparse, VideoSimulcast, VideoOff, VideoNone}, v)
}

// BitsPerSecond is what all layers together send, and what a receiver gets at most of one camera.
func (v Video) BitsPerSecond() (all, top int) {
	for _, l := range layersOf(v) {
		all, top = all+l.bitsPerSecond, max(top, l.bitsPerSecond)
	}
	return all, top
}

func (v Video) soundFrame() time.Duration {
	if v == VideoSparse {
		return 3 * audioFrame
	}
	return audioFrame
}

type layer struct {
	rid             string
	width, height   int
	framesPerSecond int
	bitsPerSecond   int
	steady          bool // every frame has the mean size, keyframes too
}

// layersOf gives the layers of a kind of video. Simulcast has what browsers choose for a camera of 1280x720.
func layersOf(v Video) []layer {
	switch v {
	case VideoSimulcast:
		return []layer{
			{rid: "q", width: 320, height: 180, framesPerSecond: 30, bitsPerSecond: 150_000},
			{rid: "h", width: 640, height: 360, framesPerSecond: 30, bitsPerSecond: 500_000},
			{rid: "f", width: 1280, height: 720, framesPerSecond: 30, bitsPerSecond: 1_500_000},
		}
	case VideoLight:
		return []layer{{width: 320, height: 180, framesPerSecond: 10, bitsPerSecond: 72_000, steady: true}} // 900 bytes a frame
	case VideoSparse:
		return []layer{{width: 320, height: 180, framesPerSecond: 4, bitsPerSecond: 28_800, steady: true}} // the same
	default:
		return nil
	}
}

func (l layer) interval() time.Duration { return time.Second / time.Duration(l.framesPerSecond) }

// In mean frames: a keyframe has keyframeSize of them, other frames vary by +-variation, and smaller frames pay back
// what is above the mean. The debt stays below debtLimit, so the bitrate holds however often keyframes are requested.
const (
	keyframeSize = 6.0
	variation    = 0.4
	payBack      = 0.3
	debtLimit    = 8.0
	smallest     = 0.1
)

type encoder struct {
	layer layer
	rng   *rand.Rand
	debt  float64 // in mean frames
}

func (e *encoder) frameBytes(key bool) int {
	mean := float64(e.layer.bitsPerSecond) / 8 / float64(e.layer.framesPerSecond)
	if e.layer.steady {
		return int(mean)
	}
	size := 1 + variation*(2*e.rng.Float64()-1) - min(e.debt, payBack)
	if key {
		size = keyframeSize
	}
	size = max(smallest, min(size, 1+debtLimit-e.debt))
	e.debt = max(0, e.debt+size-1)
	return int(size * mean)
}
