package orchestrator

import (
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/panics"
)

// Config bounds the unevenness of nodes and the waits of a call.
type Config struct {
	// Epsilon: no node should exceed (1+Epsilon) times the cluster's load/ceiling with the new room.
	Epsilon float64
	// AssumedCeiling is for nodes that reported none.
	AssumedCeiling headroom.Egress
	// StoreBudget bounds a call's wait for the store, over all round trips.
	StoreBudget time.Duration
	// ProbeTimeout bounds questions to media nodes.
	ProbeTimeout time.Duration
	// Clock makes the epochs of fresh claims; all signaling nodes must share it. nil is time.Now.
	Clock func() time.Time
	// Panics is told of questions that break; nil: one of its own.
	Panics *panics.Guard
}

// DefaultConfig is what the binary uses.
func DefaultConfig() Config {
	return Config{
		// The ring alone leaves max/mean at 1.25 to 1.40. Most rooms stay with their ring owner.
		Epsilon: 0.25,
		// What one core forwards over 1 Gbit/s.
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
