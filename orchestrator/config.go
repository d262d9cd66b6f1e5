package orchestrator

import (
	"time"

	"github.com/holdfast-rtc/holdfast/panics"
)

// Config bounds a call's waits.
type Config struct {
	// StoreBudget bounds waits for the store.
	StoreBudget time.Duration
	// ProbeTimeout bounds questions to media nodes.
	ProbeTimeout time.Duration
	// Clock makes epochs, shared by all signaling nodes, and ends reservations. nil: time.Now.
	Clock func() time.Time
	// Epsilon of the bound (1 + Epsilon) on a node's load/ceiling over the cluster's; 0 is 0.25.
	Epsilon float64
	// Panics counts questions that panic; nil: its own.
	Panics *panics.Guard
}

// DefaultConfig is the binary's.
func DefaultConfig() Config {
	return Config{StoreBudget: 300 * time.Millisecond, ProbeTimeout: time.Second}
}
