package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

//go:embed report.html
var reportPage string

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"ms": func(ms float64) string { return fmt.Sprintf("%.0f", ms) },
	}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("parse the report's page: %w", err)
	}
	if err := page.Execute(w, r.plots()); err != nil {
		return fmt.Errorf("write the report's page: %w", err)
	}
	return nil
}

// The plots' measures in SVG units.
const (
	plotWidth   = 1000.0
	plotHeight  = 220.0
	labelWidth  = 190.0
	rowHeight   = 18.0
	buckets     = 40
	timelineMax = 40 // trials that are drawn; of the others there is a line here, and all in the JSON
)

type bar struct {
	X, Y, W, H float64
	Class      string
	Title      string

	Label, Figure string // inside of it
}

// Middle is where a label stands.
func (b bar) Middle() float64 { return measure.Round1(b.X + b.W/2) }

type tick struct {
	X     float64
	Label string
}

type histogram struct {
	Title string
	Gaps  *Gaps
	Bars  []bar
	Ticks []tick
	Marks []tick // p50, p95, p99
	Stack []bar
	Total float64

	Columns columns
}

type timelineRow struct {
	Y     float64
	Label string
	Bars  []bar
}

type timeline struct {
	Trial  *Trial
	Title  string
	Kept   bool
	Open   bool // the first that is drawn, and what was broken
	Height float64
	Axis   float64
	Rows   []timelineRow
	Ticks  []tick
}

type plots struct {
	*Report

	Histograms []histogram
	Timelines  []timeline
	Left       int // trials that are not drawn
	Phases     []phaseName
}

type phaseName struct{ Name, Meaning string }

func (r *Report) plots() plots {
	p := plots{Report: r, Phases: []phaseName{
		{"detect", "until a signaling node has proof of the death"},
		{"claim", "until the room's new pin stands in the store"},
		{"tell", "until the client hears of it"},
		{stepOffer, "until its offer is ready"},
		{stepAnswer, "until the new node's answer is there"},
		{stepICE, "until a path works"},
		{stepDTLS, "until the keys are agreed"},
		{stepFirst, "until the first packet, or frame, of anybody"},
	}}
	for _, kind := range []struct {
		title   string
		gaps    *Gaps
		browser bool
	}{{"Chromium: from the fault to the first decoded frame that was shown", r.Frames, true}, {"Synthetic people: from the fault to the first packet", r.Packets, false}} {
		if kind.gaps != nil && kind.gaps.Streams.Count > 0 {
			p.Histograms = append(p.Histograms, r.histogram(kind.title, kind.gaps, kind.browser))
		}
	}
	left, drawn := timelineMax, false
	for _, t := range r.Trials {
		if !t.kept() {
			left-- // Those are drawn in any case.
		}
	}
	for _, t := range r.Trials {
		line := t.timeline()
		if line.Kept {
			if left--; left < 0 {
				line.Rows = nil
				p.Left++
			}
		}
		line.Open = !line.Kept || (!drawn && len(line.Rows) > 0)
		drawn = drawn || len(line.Rows) > 0
		p.Timelines = append(p.Timelines, line)
	}
	return p
}

func (r *Report) histogram(title string, gaps *Gaps, browser bool) histogram {
	h := histogram{Title: title, Gaps: gaps, Columns: r.columns(browser)}
	step := niceStep(gaps.Streams.Max / 8)
	most := math.Max(step, math.Ceil(gaps.Streams.Max/step)*step)
	scale := func(ms float64) float64 { return measure.Round1(ms / most * plotWidth) }
	var count [buckets]int
	for _, t := range r.Trials {
		for _, c := range t.Clients {
			for _, ms := range c.GapsMs {
				if c.Browser == browser {
					count[min(int(ms/most*buckets), buckets-1)]++
				}
			}
		}
	}
	highest := slices.Max(count[:])
	for i, n := range count {
		if n == 0 {
			continue
		}
		height := float64(n) / float64(highest) * plotHeight
		from := most / buckets
		h.Bars = append(h.Bars, bar{
			X: float64(i)*plotWidth/buckets + 1, Y: measure.Round1(plotHeight - height), W: plotWidth/buckets - 2, H: measure.Round1(height),
			Title: fmt.Sprintf("%.0f to %.0f ms: %d", float64(i)*from, float64(i+1)*from, n),
		})
	}
	for ms := 0.0; ms <= most+step/2; ms += step {
		h.Ticks = append(h.Ticks, tick{scale(ms), fmt.Sprintf("%.0f", ms)})
	}
	d := gaps.Streams
	for _, mark := range []struct {
		name string
		ms   float64
	}{{"p50", d.P50}, {"p95", d.P95}, {"p99", d.P99}} {
		h.Marks = append(h.Marks, tick{scale(mark.ms), mark.name})
	}
	for _, phase := range gaps.Phases {
		h.Total += phase.MeanMs
	}
	at := 0.0
	for _, phase := range gaps.Phases {
		width := phase.MeanMs / math.Max(h.Total, 0.1) * plotWidth
		segment := bar{X: measure.Round1(at), W: measure.Round1(width), H: 44, Class: phase.Name, Title: fmt.Sprintf("%s %.1f ms", phase.Name, phase.MeanMs)}
		if width > plotWidth/15 { // so that it fits
			segment.Label, segment.Figure = phase.Name, fmt.Sprintf("%.0f ms", phase.MeanMs)
		}
		h.Stack = append(h.Stack, segment)
		at += width
	}
	return h
}

// timeline draws the clients of one trial, room by room.
func (t *Trial) timeline() timeline {
	line := timeline{Trial: t, Title: t.line(), Kept: t.kept()}
	longest := 1.0
	for _, c := range t.Clients {
		longest = max(longest, slices.Max(append([]float64{0}, c.GapsMs...)))
	}
	step := niceStep(longest / 6)
	most := math.Ceil(longest*1.02/step) * step
	scale := func(ms float64) float64 { return measure.Round1(labelWidth + ms/most*(plotWidth-labelWidth)) }
	y, room := 0.0, ""
	for _, c := range t.Clients {
		if c.Room != room {
			room = c.Room
			line.Rows = append(line.Rows, timelineRow{Y: y, Label: room})
			y += rowHeight
		}
		row := timelineRow{Y: y, Label: c.Client}
		at := 0.0
		for _, name := range phaseNames() {
			ms := c.Phases[name]
			if ms == 0 {
				continue
			}
			row.Bars = append(row.Bars, bar{
				X: scale(at), Y: y + 3, W: measure.Round1(math.Max(scale(at+ms)-scale(at)-0.5, 0.5)), H: rowHeight - 6, Class: name,
				Title: fmt.Sprintf("%s: %s, %.1f ms", c.Client, name, ms),
			})
			at += ms
		}
		for _, ms := range c.GapsMs {
			row.Bars = append(row.Bars, bar{X: scale(ms) - 1, Y: y + 1, W: 2, H: rowHeight - 2, Class: "back", Title: fmt.Sprintf("a stream is back after %.0f ms", ms)})
		}
		line.Rows = append(line.Rows, row)
		y += rowHeight
	}
	for ms := 0.0; ms <= most+step/2; ms += step {
		line.Ticks = append(line.Ticks, tick{scale(ms), fmt.Sprintf("%.0f", ms)})
	}
	line.Axis, line.Height = y, y+24
	return line
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(math.Max(least, 1))))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= least {
			return times * power
		}
	}
	return 10 * power
}

// Y is where the label stands under an axis.
func (tick) Y(axis float64) float64 { return axis + 16 }

// Baseline is where the row's label stands.
func (r timelineRow) Baseline() float64 { return r.Y + rowHeight - 5 }
