package orchestrator

import (
	"time"

	"github.com/holdfast-rtc/holdfast/panics"
)

// Config bounds the waits of a call.
type Config struct {
	// StoreBudget bounds a call's waits for the store.
	StoreBudget time.Duration
	// ProbeTimeout bounds questions to media nodes.
	ProbeTimeout time.Duration
	// Clock makes epochs, which all signaling nodes must share, and ends reservations. nil is time.Now.
	Clock func() time.Time
	// Epsilon of the bound (1 + Epsilon) on a node's load/ceiling beside the cluster's; 0 is 0.25.
	Epsilon float64
	// Panics is told of questions that break; nil: one of its own.
	Panics *panics.Guard
}

// DefaultConfig is what the binary uses.
func DefaultConfig() Config {
	return Config{StoreBudget: 300 * time.Millisecond, ProbeTimeout: time.Second}
}
