package chaos

import (
	"fmt"
	"strings"
	"testing"
)

// TestSizes: a room of two that moves beside a room of four does not count, and the ratio is to the smallest.
func TestSizes(t *testing.T) {
	moved := func(room string, people int, rehomed, last float64) []ClientGap {
		var all []ClientGap
		for i := range people {
			all = append(all, ClientGap{
				Client: fmt.Sprint(i), Room: room, GapsMs: []float64{last, 100}, Phases: map[string]float64{"detect": 2, "claim": rehomed - 2},
			})
		}
		return all
	}
	r := &Report{Trials: []*Trial{
		{Clients: append(moved("a", 2, 900, 9000), moved("large", 4, 15, 300)...)},
		{Clients: moved("a", 2, 10, 200)},
	}}
	sizes := r.sizes()
	if len(sizes) != 2 {
		t.Fatalf("%+v", sizes)
	}
	small, large := sizes[0], sizes[1]
	if small.People != 2 || small.LastMs.Max != 200 || small.LastMs.Count != 2 || small.LastRatio != 1 {
		t.Errorf("small: %+v", small)
	}
	if large.People != 4 || large.RehomedRatio != 1.5 || large.FirstRatio != 1 || large.LastRatio != 1.5 {
		t.Errorf("large: %+v", large)
	}
	r.Trials = r.Trials[1:]
	if sizes := r.sizes(); sizes != nil {
		t.Errorf("one size: %+v", sizes)
	}
	r.Trials = append(r.Trials, &Trial{Clients: moved("large", 4, 15, 300)})
	r.Sizes = r.sizes()
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "(1.50)") {
		t.Errorf("%v in %s", err, &table)
	}
}
