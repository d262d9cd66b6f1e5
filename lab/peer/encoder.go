package peer

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

// Video is the kind of video that a peer sends.
type Video string

// The kinds.
const (
	VideoLight     Video = "light"     // one layer, 10 packets/s: cheap to make
	VideoSparse    Video = "sparse"    // one layer, 4 packets/s; audio frames of 60 ms
	VideoPortrait  Video = "portrait"  // one layer of 640x360, 15 packets/s: for people who watch
	VideoSimulcast Video = "simulcast" // three layers of 1280x720
	VideoOff       Video = "off"       // audio only
	VideoNone      Video = "none"      // signaling only
)

// Valid reports whether v is a known kind.
func (v Video) Valid() bool {
	return slices.Contains([]Video{VideoLight, VideoSparse, VideoPortrait, VideoSimulcast, VideoOff, VideoNone}, v)
}

// BitsPerSecond returns the bitrate of all layers, and of the largest.
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
	size            portrait.Size
	framesPerSecond int
	bitsPerSecond   int
	steady          bool // one size for all frames but keyframes
}

// Simulcast has the layers that browsers choose for 1280x720.
func layersOf(v Video) []layer {
	switch v {
	case VideoSimulcast:
		return []layer{
			{rid: "q", size: portrait.Size{Width: 320, Height: 180}, framesPerSecond: 30, bitsPerSecond: 150_000},
			{rid: "h", size: portrait.Size{Width: 640, Height: 360}, framesPerSecond: 30, bitsPerSecond: 500_000},
			{rid: "f", size: portrait.Size{Width: 1280, Height: 720}, framesPerSecond: 30, bitsPerSecond: 1_500_000},
		}
	case VideoLight:
		return []layer{{size: portrait.Size{Width: 320, Height: 180}, framesPerSecond: 10, bitsPerSecond: 72_000, steady: true}}
	case VideoPortrait:
		return []layer{{size: portrait.Size{Width: 640, Height: 360}, framesPerSecond: 15, bitsPerSecond: 120_000, steady: true}}
	case VideoSparse:
		return []layer{{size: portrait.Size{Width: 320, Height: 180}, framesPerSecond: 4, bitsPerSecond: 28_800, steady: true}}
	default:
		return nil
	}
}

func (l layer) interval() time.Duration { return time.Second / time.Duration(l.framesPerSecond) }

// Sizes in mean frames. A frame varies by +-variation; later frames pay back what is above the mean.
// debtLimit bounds the debt, so that the bitrate holds however often keyframes are requested.
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
	debt  float64
}

// frameBytes returns the size of the next frame, at least that of its picture.
func (e *encoder) frameBytes(key bool, picture int) int {
	mean := float64(e.layer.bitsPerSecond) / 8 / float64(e.layer.framesPerSecond)
	if e.layer.steady {
		return max(int(mean), picture)
	}
	size := 1 + variation*(2*e.rng.Float64()-1) - min(e.debt, payBack)
	if key {
		size = keyframeSize
	}
	size = max(smallest, min(size, 1+debtLimit-e.debt), float64(picture)/mean)
	e.debt = max(0, e.debt+size-1)
	return max(int(size*mean), picture)
}
