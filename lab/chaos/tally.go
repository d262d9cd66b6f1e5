package chaos

import "github.com/holdfast-rtc/holdfast/lab/measure"

// Tally sums up the trials of one scenario of a soak.
type Tally struct {
	Scenario  Name                 `json:"scenario"`
	Trials    int                  `json:"trials"`
	Kept      int                  `json:"kept"`      // trials in which every verdict was kept
	StreamsMs measure.Distribution `json:"streamsMs"` // from the fault to each stream's return, of synthetic people and browsers
}

func (r *Report) tallies() []Tally {
	var all []Tally
	for _, name := range Names() {
		t := Tally{Scenario: Name(name)}
		var streams measure.Sample
		for _, trial := range r.Trials {
			if trial.Scenario != t.Scenario {
				continue
			}
			t.Trials++
			if trial.kept() {
				t.Kept++
			}
			for _, c := range trial.Clients {
				for _, ms := range c.GapsMs {
					streams.Add(duration(ms))
				}
			}
		}
		if t.Trials > 0 {
			t.StreamsMs = streams.Distribution()
			all = append(all, t)
		}
	}
	return all
}

func (t *Trial) kept() bool {
	for _, v := range t.Verdicts {
		if v.Outcome != Kept {
			return false
		}
	}
	return true
}

func (r *Report) writeTallies(row func(format string, values ...any)) {
	if len(r.Tallies) < 2 {
		return
	}
	row("\nscenario, ms to each stream's return\ttrials\tkept\tp50\tp99\tmax")
	for _, t := range r.Tallies {
		row("%s\t%d\t%d\t%.0f\t%.0f\t%.0f", t.Scenario, t.Trials, t.Kept, t.StreamsMs.P50, t.StreamsMs.P99, t.StreamsMs.Max)
	}
}
