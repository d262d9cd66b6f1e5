// Package measure collects samples in bounded memory and tells their distribution.
//
// Above its limit a sample keeps a random part of what it was given, so that percentiles are estimates. It knows no units but
// milliseconds in its tables. Begin with Sample.
package measure

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"
)

// Past maxSample, values are a random choice (Vitter's algorithm R); count and maximum stay exact.
const maxSample = 100_000

// Sample collects durations.
type Sample struct {
	values []time.Duration
	count  int
	max    time.Duration
}

// Add adds a duration.
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

// Distribution is in milliseconds, with percentiles by nearest rank.
type Distribution struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Distribution sums up the sample.
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

// Columns are the head of a Distribution's cells.
const Columns = "count\tp50\tp95\tp99\tmax"

// String returns a Table's cells.
func (d Distribution) String() string {
	if d.Count == 0 {
		return "0\t-\t-\t-\t-"
	}
	return fmt.Sprintf("%d\t%.1f\t%.1f\t%.1f\t%.1f", d.Count, d.P50, d.P95, d.P99, d.Max)
}

// Table has tab-terminated cells.
type Table struct{ *tabwriter.Writer }

// NewTable begins a table; Flush ends it.
func NewTable(w io.Writer) Table { return Table{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)} }

// Row writes a line. Flush returns its error.
func (t Table) Row(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }

// Milliseconds keeps one digit after the point.
func Milliseconds(d time.Duration) float64 {
	return Round1(float64(d) / float64(time.Millisecond))
}

// Round1 keeps one digit after the point.
func Round1(x float64) float64 { return math.Round(x*10) / 10 }
