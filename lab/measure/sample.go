// Package measure collects what the lab's tools measured and tells its distribution.
// It is pure arithmetic, bounded in memory, and knows nothing of what was measured.
package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// maxSample bounds a sample: past it the kept values are a random choice (Vitter's algorithm R); the count and the
// maximum stay exact.
const maxSample = 100_000

// Sample collects durations and sorts them on demand.
type Sample struct {
	values []time.Duration
	count  int
	max    time.Duration
}

// Add takes one more duration.
func (s *Sample) Add(d time.Duration) {
	s.count++
	s.max = max(s.max, d)
	if len(s.values) < maxSample {
		s.values = append(s.values, d)
		return
	}
	if i := rand.IntN(s.count); i < maxSample { //nolint:gosec // a choice, not a secret
		s.values[i] = d
	}
}

// Distribution is a sample in milliseconds. Percentiles are by nearest rank: each was measured.
type Distribution struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Distribution sums up what was added.
func (s *Sample) Distribution() Distribution {
	if s.count == 0 {
		return Distribution{}
	}
	sorted := slices.Sorted(slices.Values(s.values))
	at := func(percent float64) float64 {
		rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
		return Milliseconds(sorted[max(rank, 1)-1])
	}
	return Distribution{Count: s.count, P50: at(50), P95: at(95), P99: at(99), Max: Milliseconds(s.max)}
}

// Milliseconds keeps one digit after the point.
func Milliseconds(d time.Duration) float64 {
	return Round1(float64(d) / float64(time.Millisecond))
}

// Round1 keeps one digit after the point.
func Round1(x float64) float64 { return math.Round(x*10) / 10 }
