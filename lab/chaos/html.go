package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/holdfast-rtc/holdfast/lab/peer"
)

//go:embed report.html
var reportPage string

const (
	histogramBuckets = 40
	drawnTrials      = 40 // of those that kept every promise; what was broken is always drawn
)

// WriteHTML writes the report as one self-contained page.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"ms":      func(ms float64) string { return fmt.Sprintf("%.0f", ms) },
		"percent": func(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) },
		"bar":     bar, "line": (*Trial).line, "kept": (*Trial).kept,
	}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("parse the report's page: %w", err)
	}
	if err := page.Execute(w, map[string]any{"Report": r, "Kinds": r.kinds(), "Drawn": r.drawn()}); err != nil {
		return fmt.Errorf("write the report's page: %w", err)
	}
	return nil
}

// kind is what the page draws of the synthetic people, or of the browsers.
type kind struct {
	Title   string
	Gaps    *Gaps
	Buckets []int // streams by their gap, in equal steps up to the longest one
	Highest int
}

func (r *Report) kinds() []kind {
	all := []kind{
		{Title: "Chromium: from the fault to the first decoded frame that was shown", Gaps: r.Frames},
		{Title: "Synthetic people: from the fault to the first packet", Gaps: r.Packets},
	}
	for i := range all {
		k := &all[i]
		k.Buckets = make([]int, histogramBuckets)
		for _, t := range r.Trials {
			for _, c := range t.Clients {
				for _, ms := range c.GapsMs {
					if c.Browser == (i == 0) {
						k.Buckets[min(int(ms/max(k.Gaps.Streams.Max, 1)*histogramBuckets), histogramBuckets-1)]++
					}
				}
			}
		}
		k.Highest = slices.Max(k.Buckets)
	}
	return slices.DeleteFunc(all, func(k kind) bool { return k.Highest == 0 })
}

// drawn are the trials whose clients the page shows: its size must not grow with a soak's minutes.
func (r *Report) drawn() map[*Trial]bool {
	drawn := make(map[*Trial]bool)
	left := drawnTrials
	for _, t := range r.Trials {
		if t.kept() {
			left--
		}
		if !t.kept() || left >= 0 {
			drawn[t] = true
		}
	}
	return drawn
}

type segment struct {
	Phase     peer.Step
	Ms, Width float64 // Width in percent
}

// bar divides a client's time into phases, in percent of the trial's longest gap.
func bar(c ClientGap, t *Trial) []segment {
	longest := 1.0
	for _, other := range t.Clients {
		longest = max(longest, other.last())
	}
	var all []segment
	for _, name := range phases() {
		if ms := c.Phases[name]; ms > 0 {
			all = append(all, segment{name, ms, 100 * ms / longest})
		}
	}
	return all
}
