package orchestrator

import (
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
)

// Config is how evenly nodes are filled and how long a call waits for others.
type Config struct {
	// Epsilon: a node is passed over when its load/ceiling, the new room included, would
	// exceed (1+Epsilon) times the cluster's, the new room included.
	Epsilon float64
	// AssumedCeiling stands in for the ceiling of a node that has not reported one.
	AssumedCeiling headroom.Egress
	// StoreBudget bounds the time that one call waits for the store, all its round trips included.
	StoreBudget time.Duration
	// ProbeTimeout bounds the dial to a boot that gossip does not know.
	ProbeTimeout time.Duration
	// Clock gives the epochs of fresh claims; nil is time.Now. Use the store's clock, which all signaling nodes share:
	// otherwise epochs of rooms that everybody has forgotten may go back when clocks differ or jump.
	Clock func() time.Time
}

// DefaultConfig is what the binary uses.
func DefaultConfig() Config {
	return Config{
		// A quarter above the mean evens out the ring (160 points leave max/mean at 1.25 to 1.40),
		// and still leaves most rooms with their owner.
		Epsilon: 0.25,
		// What one core forwards (DESIGN.md: about 100,000 packets/s) over 1 Gbit/s.
		AssumedCeiling: headroom.Egress{BitsPerSecond: 1_000_000_000, PacketsPerSecond: 100_000},
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
	check(c.Epsilon > 0, "epsilon must be positive")
	check(c.AssumedCeiling.BitsPerSecond > 0 && c.AssumedCeiling.PacketsPerSecond > 0, "the assumed ceiling must be positive")
	check(c.StoreBudget > 0 && c.ProbeTimeout > 0, "the store budget and the probe time-out must be positive")
	return errors.Join(faults...)
}
