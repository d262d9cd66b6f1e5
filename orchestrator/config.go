package orchestrator

import (
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/panics"
)

// Config bounds the unevenness of nodes and the waits of a call.
type Config struct {
	// Epsilon: no node should exceed (1+Epsilon) times the cluster's load/ceiling.
	Epsilon float64
	// AssumedCeiling is for nodes that reported none.
	AssumedCeiling headroom.Egress
	// StoreBudget bounds a call's waits for the store.
	StoreBudget time.Duration
	// ProbeTimeout bounds questions to media nodes.
	ProbeTimeout time.Duration
	// Clock makes epochs; all signaling nodes must share it. nil is time.Now.
	Clock func() time.Time
	// Panics is told of questions that break; nil: one of its own.
	Panics *panics.Guard
}

// DefaultConfig is what the binary uses.
func DefaultConfig() Config {
	return Config{
		// The ring alone has max/mean of 1.25 to 1.40. Most rooms stay with their owner.
		Epsilon: 0.25,
		// What one core forwards over 1 Gbit/s.
		AssumedCeiling: headroom.Egress{BitsPerSecond: 1_000_000_000, PacketsPerSecond: 100_000},
		StoreBudget:    300 * time.Millisecond,
		ProbeTimeout:   time.Second,
	}
}
