package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store measures the calls to the store.
type Store struct {
	took   *prometheus.HistogramVec
	errors *prometheus.CounterVec
}

// NewStore registers the metrics.
func (r *Registry) NewStore() *Store {
	if r == nil {
		return nil
	}
	return &Store{
		took:   r.histogramVec("store_seconds", "Time of one round trip to the store, with its repetitions, by operation: a command or one of our scripts; a pipeline counts as its first command.", "operation"),
		errors: r.counterVec("store_errors_total", "Round trips that failed, by operation. A missing key is no failure.", "operation"),
	}
}

// Called counts one round trip. The operation must be one of a bounded list.
func (s *Store) Called(operation string, took time.Duration, failed bool) {
	if s == nil {
		return
	}
	s.took.WithLabelValues(operation).Observe(took.Seconds())
	if failed {
		s.errors.WithLabelValues(operation).Inc()
	} else {
		// The counter begins with the operation's first call, so that a rate sees the first failure.
		s.errors.WithLabelValues(operation)
	}
}
