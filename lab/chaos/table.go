package chaos

import (
	"io"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := measure.NewTable(w)
	p := r.Parameters
	t.Row("%s: %s", r.Scenario, r.Sentence)
	t.Row("%d trials in %.0f s, %d rooms of %d, %d browsers, seed %d, %d cores\n", len(r.Trials), r.ElapsedSeconds, p.Rooms, p.Peers, p.Browsers, p.Seed, r.Cores)
	t.Row("verdict\tkept\tbroken\tunchecked")
	for _, v := range r.Verdicts {
		t.Row("%s\t%d\t%d\t%d", v.Name, v.Kept, v.Broken, v.Unchecked)
	}
	if len(r.Tallies) > 1 {
		t.Row("\nscenario, all kept, ms to each stream's return\t%s", measure.Columns)
		for _, s := range r.Tallies {
			t.Row("%s, %d of %d\t%s", s.Scenario, s.Kept, s.Trials, s.StreamsMs)
		}
	}
	r.writeGaps(t)
	if len(r.Sizes) > 0 {
		t.Row("\nrooms by size, ms after the fault\t%s", measure.Columns)
		for _, s := range r.Sizes {
			t.Row("%d people, re-homed, %d trials\t%s", s.People, s.Trials, s.RehomedMs)
			t.Row("  first stream\t%s\n  last stream\t%s", s.FirstMs, s.LastMs)
		}
	}
	t.Row("")
	for _, trial := range r.Trials {
		for _, v := range trial.Verdicts {
			for _, fault := range v.Faults {
				t.Row("trial %d, %s: %s", trial.Number, v.Name, fault)
			}
		}
	}
	switch {
	case r.Failure != "":
		t.Row("NOT KEPT: %s", r.Failure)
	case len(r.Trials) == 0:
		t.Row("NOT KEPT: no trial was whole")
	case r.Kept:
		t.Row("every invariant was kept in every trial")
	default:
		t.Row("NOT KEPT")
	}
	if r.Interrupted {
		t.Row("the run was interrupted: these are the trials that were whole")
	}
	return t.Flush()
}

// writeGaps writes the gaps of the same run without standbys beside.
func (r *Report) writeGaps(t measure.Table) {
	before := r.Without
	if before == nil {
		before = &Report{}
	}
	for _, g := range []struct {
		to            string
		gaps, without *Gaps
	}{
		{"the first packet, people of the room on several nodes", r.Spread, before.Spread},
		{"the first packet, synthetic people", r.Packets, before.Packets},
		{"the first frame shown, Chromium", r.Frames, before.Frames},
	} {
		writeGaps(t, g.to+", without a standby", g.without)
		writeGaps(t, g.to, g.gaps)
	}
}

func writeGaps(t measure.Table, to string, g *Gaps) {
	if g == nil {
		return
	}
	t.Row("\nto %s, ms after the fault\t%s", to, measure.Columns)
	t.Row("each stream\t%s\neach client's last stream\t%s", g.Streams, g.Clients)
	for _, p := range g.Phases {
		t.Row("  %s\t%s", p.Name, p.Ms)
	}
	t.Row("%d moves, %d by a standby, %d streams did not come back", g.Moves, g.Silent, g.Missing)
}
