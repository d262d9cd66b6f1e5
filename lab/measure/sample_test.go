package measure

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPercentilesAreMeasuredValues: each has at least its share of the values at
// or below it, and the one before it has not.
func TestPercentilesAreMeasuredValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 10_000), 1, 500).Draw(t, "milliseconds")
		var s Sample
		for _, v := range values {
			s.Add(time.Duration(v) * time.Millisecond)
		}
		d := s.Distribution()
		for percent, got := range map[int]float64{50: d.P50, 95: d.P95, 99: d.P99} {
			atMost, below := 0, 0
			for _, v := range values {
				if float64(v) <= got {
					atMost++
				}
				if float64(v) < got {
					below++
				}
			}
			if !slices.Contains(values, int(got)) || atMost*100 < percent*len(values) || below*100 >= percent*len(values) {
				t.Fatalf("p%d of %v is %g", percent, values, got)
			}
		}
		if d.Count != len(values) || d.Max != float64(slices.Max(values)) {
			t.Fatalf("%+v", d)
		}
	})
}

// TestASampleIsBounded and still tells the count, the maximum and about the middle.
func TestASampleIsBounded(t *testing.T) {
	var s Sample
	const count = 3 * maxSample
	for i := range count {
		s.Add(time.Duration(i) * time.Millisecond)
	}
	d := s.Distribution()
	if len(s.values) != maxSample || d.Count != count || d.Max != count-1 {
		t.Errorf("%d values kept, %+v", len(s.values), d)
	}
	if d.P50 < count*0.48 || d.P50 > count*0.52 {
		t.Errorf("the middle of 0 to %d is said to be %g", count, d.P50)
	}
}
