package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of a placement. Claimed and Found are good ends; the claim that Lost a race found another one's pin, which is good, too.
const (
	PlacementClaimed = "claimed"
	PlacementFound   = "found"
	PlacementLost    = "lost_race"
	PlacementFailed  = "failed"
)

// Placement counts what an orchestrator decides.
type Placement struct {
	placements *prometheus.CounterVec
	failures   *prometheus.CounterVec
	took       *prometheus.HistogramVec
	rehomings  *prometheus.CounterVec
	moves      *prometheus.CounterVec
}

// NewPlacement registers the metrics. The lists have every value that its methods are given.
func (r *Registry) NewPlacement(failures, rehomings, moves []string) *Placement {
	if r == nil {
		return nil
	}
	return &Placement{
		placements: counted(r.counterVec("placements_total", "Questions of this signaling node where a room lives: claimed (it wrote the pin), found (there was one), lost_race (another node wrote it first), failed.", "result"),
			PlacementClaimed, PlacementFound, PlacementLost, PlacementFailed),
		failures:  counted(r.counterVec("placement_failures_total", "Placements and moves that ended without a pin, by reason.", "reason"), failures...),
		took:      r.histogramVec("placement_seconds", "Time of one placement, with the store's answer."),
		rehomings: counted(r.counterVec("rehomings_total", "Pins of rooms that this signaling node replaced because they could not be used, by cause.", "cause"), rehomings...),
		moves:     counted(r.counterVec("room_moves_total", "Pins of rooms that this signaling node moved while both nodes lived, by cause.", "cause"), moves...),
	}
}

// Placed counts one placement.
func (p *Placement) Placed(result string, took time.Duration) {
	if p == nil {
		return
	}
	p.placements.WithLabelValues(result).Inc()
	p.took.WithLabelValues().Observe(took.Seconds())
}

// Failed counts a placement, or a move, that ended without a pin.
func (p *Placement) Failed(reason string) {
	if p != nil {
		p.failures.WithLabelValues(reason).Inc()
	}
}

// Rehomed counts a pin that was replaced.
func (p *Placement) Rehomed(cause string) {
	if p != nil {
		p.rehomings.WithLabelValues(cause).Inc()
	}
}

// Moved counts a pin that was moved off a living node.
func (p *Placement) Moved(cause string) {
	if p != nil {
		p.moves.WithLabelValues(cause).Inc()
	}
}
