package bandwidth

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestNarrowLink: the path shrinks under a picture of 1.5 Mbit/s, and is given back.
func TestNarrowLink(t *testing.T) {
	for _, narrow := range []float64{250_000, 300_000, 400_000, 700_000, 1_000_000} {
		for _, queue := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%gk/%v", narrow/1000, queue), func(t *testing.T) {
				c := newCall(t, wide())
				c.run(10 * time.Second)
				if c.estimator.target != 0 {
					t.Fatal("limited without a cause:", c.estimator.target)
				}
				c.link.bitsPerSecond, c.link.queue = narrow, queue
				c.run(1500 * time.Millisecond)
				if got := c.estimator.target; got == 0 || got > 1.15*narrow {
					t.Fatalf("target %.0f after 1.5 s, the path carries %.0f", got, narrow)
				}
				c.run(4 * time.Second)
				c.longest, c.paused, c.padding = 0, 0, 0
				c.run(25 * time.Second)
				t.Logf("target %.0f, level %d, paused %v, longest delay %v, padding %.0f bit/s",
					c.estimator.target, c.level, c.paused, c.longest, float64(c.padding*8)/25)
				if c.estimator.target < 0.6*narrow || c.estimator.target > 1.15*narrow {
					t.Errorf("target %.0f, the path carries %.0f", c.estimator.target, narrow)
				}
				if c.paused > time.Second {
					t.Errorf("no picture for %v of 25 s", c.paused)
				}
				c.link.bitsPerSecond = 20e6
				c.run(20 * time.Second)
				if c.level != len(layers)-1 {
					t.Errorf("layer %d 20 s after the path was given back, target %.0f", c.level, c.estimator.target)
				}
			})
		}
	}
}

// TestGoodPathsAreNotLimited: late packets of a busy machine, loss of a radio,
// and clocks that drift are no congestion.
func TestGoodPathsAreNotLimited(t *testing.T) {
	stall, dice := time.Duration(0), rand.New(rand.NewPCG(1, 2))
	for name, l := range map[string]link{
		"busy": {bitsPerSecond: 20e6, queue: time.Second, late: func() time.Duration {
			switch {
			case stall > 0:
				stall -= 10 * time.Millisecond // the backlog is read one by one
			case dice.IntN(200) == 0:
				stall = time.Duration(dice.IntN(200)) * time.Millisecond
			}
			return stall + time.Duration(dice.IntN(30))*time.Millisecond
		}},
		"lossy": {bitsPerSecond: 20e6, queue: time.Second, loss: 0.05, dice: dice},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(t, l)
			for range 60 {
				c.run(time.Second)
				if c.estimator.target != 0 {
					t.Fatalf("limited to %.0f after %v", c.estimator.target, c.now)
				}
			}
		})
	}
}

// TestALongerPath: a delay that came to stay is no queue, and takes the picture's
// layers for seconds only.
func TestALongerPath(t *testing.T) {
	c := newCall(t, wide())
	c.run(5 * time.Second)
	c.link.late = func() time.Duration { return 200 * time.Millisecond }
	c.run(20 * time.Second)
	if c.level != len(layers)-1 || c.paused > 0 {
		t.Errorf("layer %d, no picture for %v, target %.0f", c.level, c.paused, c.estimator.target)
	}
}

// TestABurstDoesNotPausePictures: packets that are sent at once arrive over a whole interval, which then says nothing of how fast they
// were sent, but how much passes.
func TestABurstDoesNotPausePictures(t *testing.T) {
	for _, carries := range []float64{1e6, 2e6, 3e6, 4e6} {
		t.Run(fmt.Sprintf("%gM", carries/1e6), func(t *testing.T) {
			c := newCall(t, link{bitsPerSecond: carries, queue: 2 * time.Second})
			c.level = 1
			c.run(3 * time.Second)
			for range 150 {
				c.send(1264)
			}
			c.run(4 * time.Second)
			if c.paused > 0 {
				t.Errorf("no picture for %v, target %.0f", c.paused, c.estimator.target)
			}
			if got := c.estimator.target; got > 1.15*carries {
				t.Errorf("target %.0f, the path carries %.0f", got, carries)
			}
		})
	}
}

// TestPolicer: a path without a queue says it by loss alone.
func TestPolicer(t *testing.T) {
	c := newCall(t, wide())
	c.run(5 * time.Second)
	c.link.bitsPerSecond, c.link.queue = 600_000, 30*time.Millisecond
	c.run(5 * time.Second)
	if got := c.estimator.target; got == 0 || got > 700_000 {
		t.Fatalf("target %.0f, the path carries 600k", got)
	}
}

// TestWhatWasNotSentIsNotKnown: a target does not grow while little is sent.
func TestWhatWasNotSentIsNotKnown(t *testing.T) {
	c := newCall(t, wide())
	c.run(5 * time.Second)
	c.link.bitsPerSecond = 400_000
	c.run(3 * time.Second)
	c.link.bitsPerSecond = 20e6
	before := c.estimator.target
	c.level = -1
	for range 1000 {
		c.now += tick
		c.send(165)
		c.feedback()
	}
	if c.estimator.target != before {
		t.Fatalf("target %.0f, was %.0f", c.estimator.target, before)
	}
}

// TestAPausedPictureIsProbedFor: a moment in which hardly anything passed takes the last
// picture for seconds, not for as long as probes are apart on a path that is known.
func TestAPausedPictureIsProbedFor(t *testing.T) {
	c := newCall(t, wide())
	c.run(5 * time.Second)
	for range 5 { // and each time it finds nothing, the next probe is later
		c.link.bitsPerSecond, c.link.queue = 80_000, time.Second
		c.run(4 * time.Second)
		if c.level >= 0 {
			t.Fatal("not paused: target", c.estimator.target)
		}
		c.link.bitsPerSecond = 450_000
		c.paused = 0
		c.run(10 * time.Second)
		t.Log("no picture for", c.paused)
		if c.level < 0 || c.paused > 4500*time.Millisecond {
			t.Errorf("no picture for %v, layer %d, target %.0f", c.paused, c.level, c.estimator.target)
		}
	}
}

// TestAnEstimateIsKeptAcrossAMove: the first seconds on another node send no more than the path carries, so that sound is not late; and
// what was known is only a beginning, whether the path has become narrower or wider by then.
func TestAnEstimateIsKeptAcrossAMove(t *testing.T) {
	const narrow = 400_000
	move := func(before *call, l link) *call {
		c := newCall(t, l)
		c.estimator = newEstimator(uint64(before.estimator.target), 0)
		c.choose()
		c.keyframe = true
		return c
	}
	path := link{bitsPerSecond: narrow, queue: time.Second}
	before := newCall(t, path)
	before.run(20 * time.Second)
	t.Run("as narrow", func(t *testing.T) {
		c := move(before, path)
		c.run(2 * time.Second)
		if c.longest > 300*time.Millisecond {
			t.Errorf("a packet took %v in the first 2 s", c.longest)
		}
		if c.paused > 0 {
			t.Errorf("no picture for %v", c.paused)
		}
	})
	t.Run("narrower", func(t *testing.T) {
		c := move(before, link{bitsPerSecond: narrow / 2, queue: time.Second})
		c.run(2 * time.Second)
		if got := c.estimator.target; got > 1.15*narrow/2 {
			t.Errorf("target %.0f after 2 s, the path carries %d", got, narrow/2)
		}
	})
	t.Run("wide", func(t *testing.T) {
		c := move(before, wide())
		c.run(20 * time.Second)
		if c.level != len(layers)-1 {
			t.Errorf("layer %d after 20 s, target %.0f", c.level, c.estimator.target)
		}
	})
}

// TestLateSoundAlone: the delay of sound alone goes up and stays, with nothing lost. What is sent cannot be the cause, so that pictures
// are not limited by it, neither those of a call that had some nor those that begin later.
func TestLateSoundAlone(t *testing.T) {
	for name, pictures := range map[string]time.Duration{"after pictures": 5 * time.Second, "from the beginning": 0} {
		t.Run(name, func(t *testing.T) {
			c := newCall(t, wide())
			c.run(pictures)
			sound := func(d time.Duration) {
				for end := c.now + d; c.now < end; c.now += tick {
					c.send(165)
					if c.now%(5*tick) == 0 {
						c.feedback()
					}
				}
			}
			sound(5 * time.Second)
			c.link.late = func() time.Duration { return 300 * time.Millisecond }
			sound(3 * time.Second)
			if c.estimator.target != 0 {
				t.Errorf("limited to %.0f", c.estimator.target)
			}
			c.level = 0
			c.run(10 * time.Second)
			if c.paused > 0 {
				t.Errorf("no picture for %v, target %.0f", c.paused, c.estimator.target)
			}
			c.level, c.link.bitsPerSecond = len(layers)-1, 300_000
			c.run(2 * time.Second)
			if got := c.estimator.target; got == 0 || got > 1.15*300_000 {
				t.Errorf("target %.0f, the path carries 300k by now", got)
			}
		})
	}
}

// TestClocksDriftInSilence: nothing was sent for an hour, in which the receiver's clock fell behind or ran ahead. That is no queue, and a
// path that has become narrow is still found.
func TestClocksDriftInSilence(t *testing.T) {
	const drift = 180 * time.Millisecond // 50 ppm
	for name, carries := range map[string]float64{"wide": 20e6, "narrow": 300_000} {
		for _, later := range []time.Duration{drift, -drift} {
			t.Run(fmt.Sprintf("%s/%v", name, later), func(t *testing.T) {
				c := newCall(t, wide())
				c.link.late = func() time.Duration { return drift }
				c.run(30 * time.Second)
				c.now += time.Hour
				c.link.late = func() time.Duration { return drift + later }
				c.link.bitsPerSecond = carries
				c.run(3 * time.Second)
				switch got := c.estimator.target; {
				case name == "wide" && got != 0:
					t.Errorf("limited to %.0f without a cause", got)
				case name == "narrow" && (got == 0 || got > 1.15*carries):
					t.Errorf("target %.0f, the path carries %.0f", got, carries)
				}
			})
		}
	}
}
