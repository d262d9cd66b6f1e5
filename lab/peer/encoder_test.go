package peer

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

// TestTheBitrateHolds however often keyframes are asked for: what a layer sends
// over any time is its mean and at most debtLimit frames more.
func TestTheBitrateHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(append(layersOf(VideoSimulcast), layersOf(VideoLight)...)).Draw(t, "layer")
		e := encoder{layer: l, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		mean := float64(l.bitsPerSecond) / 8 / float64(l.framesPerSecond)
		keys := rapid.SliceOfN(rapid.Bool(), 1, 300).Draw(t, "keyframes")
		sum := 0.0
		for i, key := range keys {
			size := e.frameBytes(key, 0)
			sum += float64(size)
			if float64(size) > (1+debtLimit)*mean {
				t.Fatalf("a frame of %d bytes where the mean is %.0f", size, mean)
			}
			if limit := (float64(i+1) + debtLimit) * mean; sum > limit {
				t.Fatalf("%.0f bytes in %d frames, at most %.0f", sum, i+1, limit)
			}
		}
	})
}

// TestTheMeanIsReached: the debt is paid back, but no more than it.
func TestTheMeanIsReached(t *testing.T) {
	for _, l := range layersOf(VideoSimulcast) {
		e := encoder{layer: l, rng: rand.New(rand.NewPCG(1, 2))}
		clip, err := portrait.Open(0, portrait.VP8, l.size)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		const seconds = 60
		for i := range seconds * l.framesPerSecond {
			sum += e.frameBytes(i%300 == 0, len(clip[min(i%300, 1)]))
		}
		if bits := sum * 8 / seconds; bits < l.bitsPerSecond*9/10 || bits > l.bitsPerSecond*21/20 {
			t.Errorf("layer %s sends %d bit/s, want about %d", l.rid, bits, l.bitsPerSecond)
		}
	}
}

// TestAStallIsNotCaughtUp: after a short one the frames follow, after a long one
// they are left out and the timestamps know it.
func TestAStallIsNotCaughtUp(t *testing.T) {
	now := time.Now()
	c := clock{next: now, interval: 20 * time.Millisecond, ticks: 960}
	leftOut := 0
	count := func() (frames int) {
		for {
			_, skipped, ok := c.due(now)
			if !ok {
				return frames
			}
			frames++
			leftOut += skipped
		}
	}
	if n := count(); n != 1 || c.timestamp != 960 {
		t.Fatalf("%d frames at the beginning, timestamp %d", n, c.timestamp)
	}
	now = now.Add(100 * time.Millisecond)
	if n := count(); n != 5 || c.timestamp != 6*960 || leftOut != 0 {
		t.Errorf("%d frames after 100 ms, timestamp %d", n, c.timestamp)
	}
	now = now.Add(2 * time.Second)
	if n := count(); n != 1 || c.timestamp != 106*960 || leftOut != 99 {
		t.Errorf("%d frames after a stall of 2 s, timestamp %d", n, c.timestamp)
	}
}
