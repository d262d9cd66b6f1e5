// Package measure collects what the lab's tools measured and tells its distribution,
// in figures and in a table. It is bounded in memory, and knows nothing of what was measured.
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

// Columns are the head of a row of a Table that ends with a Distribution.
const Columns = "count\tp50\tp95\tp99\tmax"

// String is the end of a row of a Table.
func (d Distribution) String() string {
	if d.Count == 0 {
		return "0\t-\t-\t-\t-"
	}
	return fmt.Sprintf("%d\t%.1f\t%.1f\t%.1f\t%.1f", d.Count, d.P50, d.P95, d.P99, d.Max)
}

// Table writes lines whose cells end with tabs.
type Table struct{ *tabwriter.Writer }

// NewTable begins one; Flush ends it.
func NewTable(w io.Writer) Table { return Table{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)} }

// Row writes a line. Flush has the error.
func (t Table) Row(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }

// Milliseconds keeps one digit after the point.
func Milliseconds(d time.Duration) float64 {
	return Round1(float64(d) / float64(time.Millisecond))
}

// Round1 keeps one digit after the point.
func Round1(x float64) float64 { return math.Round(x*10) / 10 }
