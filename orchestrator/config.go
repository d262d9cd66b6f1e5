package orchestrator

import (
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// Config bounds a call's waits.
type Config struct {
	// StoreBudget is for the store's answers.
	StoreBudget time.Duration
	// ProbeTimeout is for media nodes' answers.
	ProbeTimeout time.Duration
	// StoreClock is for epochs, which all signaling nodes share; nil: Clock. It may be set back.
	StoreClock func() time.Time
	// Clock is for reservations and refusals, which stay in this process; nil: time.Now.
	Clock func() time.Time
	// Epsilon: a node's load/ceiling may be 1+Epsilon times the cluster's; 0: 0.25.
	Epsilon float64
	// Panics counts panics; nil: its own.
	Panics *panics.Guard
}

// DefaultConfig is the binary's.
func DefaultConfig() Config {
	return Config{StoreBudget: 300 * time.Millisecond, ProbeTimeout: time.Second}
}
