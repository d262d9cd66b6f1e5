package bandwidth

import (
	"math/rand/v2"
	"testing"
	"time"
)

// link is a path of packets in simulated time.
type link struct {
	bitsPerSecond float64
	queue         time.Duration // of waiting; what would wait longer is lost
	loss          float64
	dice          *rand.Rand           // of the loss; the same at every run
	late          func() time.Duration // what a busy receiver adds

	free time.Duration // when the last packet has left
	last time.Duration // arrival; packets do not overtake
}

func (l *link) carry(at time.Duration, bytes int) (time.Duration, bool) {
	start := max(at, l.free)
	if start-at > l.queue || l.loss > 0 && l.dice.Float64() < l.loss {
		return 0, false
	}
	l.free = start + time.Duration(float64(bytes*8)/l.bitsPerSecond*float64(time.Second))
	arrived := l.free + 20*time.Millisecond
	if l.late != nil {
		arrived += l.late()
	}
	l.last = max(l.last, arrived)
	return l.last, true
}

// wide is a path that carries everything.
func wide() link { return link{bitsPerSecond: 20e6, queue: 200 * time.Millisecond} }

// call is a sender of sound and of one picture in layers over a link, with the
// estimator as its only guide: what forward does, in short.
type call struct {
	t         *testing.T
	link      link
	estimator estimator
	now       time.Duration
	sequence  uint16
	sent      uint64
	flying    []flight
	level     int // of layers; -1: paused
	keyframe  bool
	raised    time.Duration
	longest   time.Duration // queueing of a packet, since the last reset
	padding   uint64
	paused    time.Duration
}

type flight struct {
	sample
	arrives bool
}

var layers = []float64{150_000, 500_000, 1_500_000}

const (
	audio = 66_000 // 100 bytes each 20 ms, with all headers
	frame = 60 * time.Millisecond
	tick  = 20 * time.Millisecond
)

func newCall(t *testing.T, l link) *call {
	return &call{t: t, link: l, estimator: newEstimator(0, 0), level: len(layers) - 1}
}

func (c *call) send(bytes int) {
	arrived, ok := c.link.carry(c.now, bytes)
	c.flying = append(c.flying, flight{sample{sequence: c.sequence, sent: c.now, arrived: arrived, bytes: uint32(bytes)}, ok})
	if ok {
		c.longest = max(c.longest, arrived-c.now)
	}
	c.sequence++
	c.sent += uint64(bytes)
}

// run lets time go by.
func (c *call) run(d time.Duration) {
	for end := c.now + d; c.now < end; c.now += tick {
		c.send(165)
		if c.level >= 0 && c.now%frame == 0 {
			bytes := layers[c.level] / 8 * frame.Seconds()
			if c.keyframe {
				bytes, c.keyframe = 5*bytes, false
			}
			for ; bytes > 0; bytes -= 1200 {
				c.send(min(int(bytes), 1200) + 64)
			}
		}
		if c.level < len(layers)-1 {
			for n := c.estimator.probe(c.now, 1.15*(audio+layers[len(layers)-1]), c.level < 0, c.sent, c.sequence); n > 0; n -= 319 {
				c.send(319)
				c.padding += 319
			}
		}
		if c.level < 0 {
			c.paused += tick
		}
		if c.now%(5*tick) == 0 {
			c.feedback()
			c.choose()
		}
	}
}

// feedback reports what has arrived, and what is missing before it.
func (c *call) feedback() {
	newest := -1
	for i, f := range c.flying {
		if f.arrives && f.arrived <= c.now {
			newest = i
		}
	}
	for _, f := range c.flying[:newest+1] {
		if f.arrives {
			c.estimator.received(f.sample)
		} else {
			c.estimator.lost(f.sequence)
		}
	}
	c.flying = c.flying[newest+1:]
	c.estimator.settle(c.now)
}

func (c *call) choose() {
	target := c.estimator.target
	if target == 0 {
		return
	}
	fits := func(margin float64) int {
		best := -1
		for i, bits := range layers {
			if audio+margin*bits <= target {
				best = i
			}
			if margin > 1 && i == 0 && audio+1.05*bits <= target {
				best = 0
			}
		}
		return best
	}
	switch down, up := fits(1), fits(1.15); {
	case down < c.level:
		c.level, c.keyframe = down, true
	case up > c.level && c.now-c.raised > time.Second:
		c.level, c.keyframe, c.raised = up, true, c.now
	}
}
