package orchestrator

import (
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Config bounds how long a call waits, and how unevenly rooms may be placed.
type Config struct {
	// StoreBudget is the time that all of one placement's store trips may take together.
	StoreBudget time.Duration
	// ProbeTimeout is the time in which a media node must answer.
	ProbeTimeout time.Duration
	// StoreClock gives the time from which epochs are made, which all signaling nodes share. If it is nil, Clock is
	// used. It may be set back.
	StoreClock func() time.Time
	// Clock gives the time for reservations and refusals, which stay in this process. If it is nil, time.Now is used.
	Clock func() time.Time
	// Epsilon says how uneven the load may be: with the room, a node's load/ceiling may be 1+Epsilon times the
	// cluster's. 0 stands for 0.25.
	Epsilon float64
	// Branches lists the boots that have people of a room beside its owner, the one with the most first. It may be nil.
	Branches func(ring.RoomID) []pin.BootID
	// Standby returns the boot that can go on with a room's connections, or nothing. It may be nil.
	Standby func(ring.RoomID) pin.BootID
	// Panics counts the caught panics. If it is nil, New makes a guard of its own.
	Panics *panics.Guard
	// Events is told of each room that this process moves. It may be nil.
	Events *events.Recorder
	// Metrics counts placements. It may be nil.
	Metrics *metrics.Placement
}

// DefaultConfig has the values of the binary.
func DefaultConfig() Config {
	return Config{StoreBudget: 300 * time.Millisecond, ProbeTimeout: time.Second}
}
