//go:build linux

package e2e

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

//go:embed testdata/continuity.js
var continuityScript string

// continuity is what testdata/continuity.js tells.
type continuity struct {
	ShownMs, DecodedMs   float64 // longest time between two pictures
	ConcealedMs, BurstMs float64
	States, Tiles        []string
	Bare                 float64 // looks at which an element showed nothing
	told                 time.Duration
}

func (p *participant) continuity(t *testing.T) continuity {
	t.Helper()
	var seen continuity
	p.mustEval(t, "continuity.take()", &seen)
	return seen
}

// distribution is p50, p95 and the maximum of each figure, in milliseconds.
func distribution(all []continuity) string {
	text := fmt.Sprintf("%d times;", len(all))
	for _, figure := range []struct {
		name string
		of   func(continuity) float64
	}{
		{"between decoded pictures", func(c continuity) float64 { return c.DecodedMs }},
		{"between shown pictures", func(c continuity) float64 { return c.ShownMs }},
		{"told", func(c continuity) float64 { return float64(c.told.Milliseconds()) }},
		{"burst of made-up sound", func(c continuity) float64 { return c.BurstMs }},
		{"all made-up sound", func(c continuity) float64 { return c.ConcealedMs }},
	} {
		values := make([]float64, 0, len(all))
		for _, c := range all {
			values = append(values, figure.of(c))
		}
		slices.Sort(values)
		at := func(share float64) float64 { return values[int(math.Ceil(share*float64(len(values))))-1] }
		text += fmt.Sprintf(" %s %.0f/%.0f/%.0f", figure.name, at(0.5), at(0.95), values[len(values)-1])
	}
	return text
}
