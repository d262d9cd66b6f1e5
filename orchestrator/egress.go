package orchestrator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Egress is an amount of outgoing media: of a room, a node, a ceiling.
type Egress struct {
	BitsPerSecond    uint64 `json:"bitsPerSecond"`
	PacketsPerSecond uint64 `json:"packetsPerSecond"`
}

// String gives both, for logs and messages.
func (e Egress) String() string {
	return fmt.Sprintf("%.1f Mbit/s and %d packets/s", float64(e.BitsPerSecond)/1e6, e.PacketsPerSecond)
}

// plus returns e + f, and the largest amount there is where that is more: a report that says so must not come out as a small one.
func (e Egress) plus(f Egress) Egress {
	return Egress{added(e.BitsPerSecond, f.BitsPerSecond), added(e.PacketsPerSecond, f.PacketsPerSecond)}
}

// added is a + b, or the largest number.
func added(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// minus returns e - f, never below zero.
func (e Egress) minus(f Egress) Egress {
	return Egress{e.BitsPerSecond - min(e.BitsPerSecond, f.BitsPerSecond), e.PacketsPerSecond - min(e.PacketsPerSecond, f.PacketsPerSecond)}
}

// atMost returns e where it is within ceiling, and ceiling where it is not.
func (e Egress) atMost(ceiling Egress) Egress {
	return Egress{min(e.BitsPerSecond, ceiling.BitsPerSecond), min(e.PacketsPerSecond, ceiling.PacketsPerSecond)}
}

// times returns n streams of e.
func (e Egress) times(n uint64) Egress {
	return Egress{e.BitsPerSecond * n, e.PacketsPerSecond * n}
}

// fits reports whether e is within ceiling, in bits and in packets.
func (e Egress) fits(ceiling Egress) bool {
	return e.BitsPerSecond <= ceiling.BitsPerSecond && e.PacketsPerSecond <= ceiling.PacketsPerSecond
}

// share is the part of ceiling that e takes, in whichever dimension it takes more. The
// ceiling must not be zero.
func (e Egress) share(ceiling Egress) float64 {
	return max(float64(e.BitsPerSecond)/float64(ceiling.BitsPerSecond), float64(e.PacketsPerSecond)/float64(ceiling.PacketsPerSecond))
}

// maxExpectedSize bounds what a token may claim, so that the cost cannot
// overflow and one absurd number cannot fill the ledger.
const maxExpectedSize = 100_000

// Config is what a room is expected to cost and how evenly nodes are filled.
type Config struct {
	// Audio and Video are the expected egress of one forwarded stream, with RTP, UDP
	// and IP overhead.
	Audio, Video Egress
	// AudioSlots and VideoSlots are the receive slots of a viewer: more senders
	// than that are not forwarded to anybody.
	AudioSlots, VideoSlots int
	// DefaultSize is the room size assumed when nobody says one.
	DefaultSize int
	// Epsilon: a node is passed over when its load/ceiling, the new room included, would
	// exceed (1+Epsilon) times the cluster's, the new room included.
	Epsilon float64
	// AssumedCeiling stands in for the ceiling of a node that has not reported one.
	AssumedCeiling Egress
	// StoreBudget bounds the time that one call spends waiting for the store,
	// retries and repeated compare-and-sets included.
	StoreBudget time.Duration
	// ProbeTimeout bounds the dial to a boot that gossip does not know.
	ProbeTimeout time.Duration
	// Clock gives the epochs of fresh claims; nil is time.Now. The store's own clock is best, for all edges share it. Where
	// theirs differ, or jump, epochs of rooms that everybody has forgotten may go back, and nothing else.
	Clock func() time.Time
}

// DefaultConfig is what the binary uses.
func DefaultConfig() Config {
	return Config{
		// Opus at 20 ms is 50 packets/s; 32 kbit/s of it with about 20 bytes of overhead a packet.
		Audio: Egress{BitsPerSecond: 40_000, PacketsPerSecond: 50},
		// 720p-class video; 1.5 Mbit/s in packets of 1,200 bytes is 156 of them.
		Video: Egress{BitsPerSecond: 1_500_000, PacketsPerSecond: 160},
		// Three voices at once is what people can follow; nine pictures fill a page.
		AudioSlots: 3, VideoSlots: 9,
		// Most calls have two to four people; four is charged so that a burst of new
		// rooms is not taken for free.
		DefaultSize: 4,
		// A quarter above the mean: small enough to even out the ring (160 points leave
		// max/mean at 1.25 to 1.40), large enough that most rooms stay with their owner.
		Epsilon: 0.25,
		// What one core forwards (DESIGN.md: about 100,000 packets/s) over 1 Gbit/s.
		AssumedCeiling: Egress{BitsPerSecond: 1_000_000_000, PacketsPerSecond: 100_000},
		StoreBudget:    300 * time.Millisecond,
		ProbeTimeout:   time.Second,
	}
}

// Validate lists every fault at once.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New(text))
		}
	}
	check(c.Audio != Egress{} && c.Video != Egress{}, "the bitrates of audio and video must not be zero")
	check(c.AudioSlots >= 0 && c.VideoSlots >= 0, "the numbers of slots must not be negative")
	check(c.DefaultSize > 0, "the default room size must be positive")
	check(c.Epsilon > 0, "epsilon must be positive")
	check(c.AssumedCeiling.BitsPerSecond > 0 && c.AssumedCeiling.PacketsPerSecond > 0, "the assumed ceiling must be positive")
	check(c.StoreBudget > 0 && c.ProbeTimeout > 0, "the store budget and the probe time-out must be positive")
	return errors.Join(faults...)
}

// Cost is what a room of n people is expected to send: v*(n-1) video streams and
// min(n, audio slots)*(n-1) audio streams, v = min(n, video slots). A size of 0 or
// less is the default one; a room of one is charged as two, for nobody opens
// a room to stay alone in it.
func (c Config) Cost(expectedSize int) Egress {
	if expectedSize <= 0 {
		expectedSize = c.DefaultSize
	}
	n := min(max(expectedSize, 2), maxExpectedSize)
	viewers := uint64(n - 1)
	video := c.Video.times(uint64(min(n, c.VideoSlots)) * viewers)
	return video.plus(c.Audio.times(uint64(min(n, c.AudioSlots)) * viewers))
}
