package chaos

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// ReportVersion grows when a field of the report changes its name or meaning.
// Fields may be added under the same version.
const ReportVersion = 1

// Report is what a run showed.
type Report struct {
	Version        int        `json:"version"`
	Scenario       Name       `json:"scenario"`
	Sentence       string     `json:"sentence"`
	Began          time.Time  `json:"began"`
	ElapsedSeconds float64    `json:"elapsedSeconds"`
	Cores          int        `json:"cores"`
	Parameters     Parameters `json:"parameters"`
	Interrupted    bool       `json:"interrupted"`
	Failure        string     `json:"failure,omitempty"` // what kept the run from going on
	Kept           bool       `json:"kept"`              // every verdict of every trial, of at least one
	Verdicts       []Summary  `json:"verdicts"`
	Packets        *Gaps      `json:"synthetic,omitempty"` // to the first packet; nil where nobody had to move
	Frames         *Gaps      `json:"browsers,omitempty"`  // to the first decoded frame that was shown
	Tallies        []Tally    `json:"tallies"`
	Sizes          []SizeGaps `json:"sizes,omitempty"` // of rooms of more than one size
	Trials         []*Trial   `json:"trials"`
	Evidence       []Evidence `json:"-"` // kept with the logs
}

// Parameters are what the run was asked for.
type Parameters struct {
	Trials      int     `json:"trials,omitempty"`
	SoakMinutes float64 `json:"soakMinutes,omitempty"`
	Rooms       int     `json:"rooms"`
	Peers       int     `json:"peers"`
	Large       int     `json:"large,omitempty"`
	Cameras     int     `json:"cameras"` // on in each room; -1 = everybody's
	Browsers    int     `json:"browsers"`
	Seed        uint64  `json:"seed"`
	CutSeconds  float64 `json:"cutSeconds,omitempty"`
}

// Summary is one verdict over all trials.
type Summary struct {
	Name      string `json:"name"`
	Sentence  string `json:"sentence"`
	Kept      int    `json:"kept"`
	Broken    int    `json:"broken"`
	Unchecked int    `json:"unchecked"`
}

// Gaps are the times from a fault to media on the new node.
type Gaps struct {
	Streams measure.Distribution `json:"streamsMs"` // of each stream
	Clients measure.Distribution `json:"clientsMs"` // of each client's last stream
	Missing int                  `json:"missing"`   // streams that did not come back at all
	Moves   int                  `json:"moves"`     // of clients
	Phases  []Phase              `json:"phases"`
}

// Phase is where the time of the first stream goes.
type Phase struct {
	Name   string               `json:"name"`
	MeanMs float64              `json:"meanMs"`
	Ms     measure.Distribution `json:"ms"`
}

// Trial is one fault.
type Trial struct {
	Number   int         `json:"number"`
	Scenario Name        `json:"scenario"`
	Began    time.Time   `json:"began"`
	Faults   []Fault     `json:"faults"`
	Verdicts []Verdict   `json:"verdicts"`
	Clients  []ClientGap `json:"clients,omitempty"` // of the rooms that had to move
	Note     string      `json:"note,omitempty"`

	WholeMs         float64 `json:"wholeMs"`         // from the end of the mending until all was whole
	FullestShare    float64 `json:"fullestShare"`    // the largest part of a ceiling that a node which was not hurt sent or reserved
	HealthyPausesMs float64 `json:"healthyPausesMs"` // the longest pause of a stream in a room that did not have to move, as the looks show it
}

func (t *Trial) line() string {
	var faults, broken []string
	for _, f := range t.Faults {
		faults = append(faults, f.Node+" "+f.What)
	}
	for _, v := range t.Verdicts {
		if v.Outcome != Kept {
			broken = append(broken, fmt.Sprintf("%s %s (%s)", v.Name, v.Outcome, v.first()))
		}
	}
	var gaps measure.Sample
	for _, c := range t.Clients {
		for _, ms := range c.GapsMs {
			gaps.Add(duration(ms))
		}
	}
	line := fmt.Sprintf("trial %d: %s", t.Number, strings.Join(faults, ", "))
	if d := gaps.Distribution(); d.Count > 0 {
		line += fmt.Sprintf("; %d streams back, p50 %.0f ms, max %.0f ms", d.Count, d.P50, d.Max)
	}
	if t.HealthyPausesMs > 0 {
		line += fmt.Sprintf("; elsewhere no pause over %.0f ms", t.HealthyPausesMs)
	}
	line += fmt.Sprintf("; fullest survivor at %.0f %%", 100*t.FullestShare)
	if t.WholeMs > 0 {
		line += fmt.Sprintf("; whole %.1f s after the mending", t.WholeMs/1000)
	}
	if len(broken) > 0 {
		return line + "; BROKEN: " + strings.Join(broken, "; ")
	}
	return line + "; every invariant kept"
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// finish sums the trials up.
func (r *Report) finish(now time.Time) {
	r.ElapsedSeconds = measure.Round1(now.Sub(r.Began).Seconds())
	at := make(map[string]int)
	r.Kept = len(r.Trials) > 0 && r.Failure == ""
	for _, t := range r.Trials {
		for _, v := range t.Verdicts {
			i, known := at[v.Name]
			if !known {
				i = len(r.Verdicts)
				at[v.Name] = i
				r.Verdicts = append(r.Verdicts, Summary{Name: v.Name, Sentence: v.Sentence})
			}
			switch v.Outcome {
			case Kept:
				r.Verdicts[i].Kept++
			case Broken:
				r.Verdicts[i].Broken++
			case Unchecked:
				r.Verdicts[i].Unchecked++
			}
			r.Kept = r.Kept && v.Outcome == Kept
		}
	}
	r.Packets, r.Frames, r.Tallies = r.gaps(false), r.gaps(true), r.tallies()
	r.Sizes = r.sizes()
}

func (r *Report) gaps(browsers bool) *Gaps {
	var streams, clients measure.Sample
	g := &Gaps{}
	phases := make(map[string]*measure.Sample)
	seen, whole := 0, 0
	for _, t := range r.Trials {
		for _, c := range t.Clients {
			if c.Browser != browsers {
				continue
			}
			seen++
			g.Missing += c.Missing
			last := 0.0
			for _, ms := range c.GapsMs {
				streams.Add(duration(ms))
				last = max(last, ms)
			}
			if c.Missing == 0 {
				clients.Add(duration(last))
			}
			if len(c.GapsMs) == 0 {
				continue
			}
			whole++
			for _, name := range phaseNames() {
				if phases[name] == nil {
					phases[name] = &measure.Sample{}
				}
				phases[name].Add(duration(c.Phases[name]))
				g.mean(name, c.Phases[name])
			}
		}
	}
	if seen == 0 {
		return nil
	}
	for i := range g.Phases {
		g.Phases[i].MeanMs = measure.Round1(g.Phases[i].MeanMs / float64(whole))
		g.Phases[i].Ms = phases[g.Phases[i].Name].Distribution()
	}
	g.Moves = seen
	g.Streams, g.Clients = streams.Distribution(), clients.Distribution()
	return g
}

// mean adds to a phase's sum, which gaps divides.
func (g *Gaps) mean(name string, ms float64) {
	for i := range g.Phases {
		if g.Phases[i].Name == name {
			g.Phases[i].MeanMs += ms
			return
		}
	}
	g.Phases = append(g.Phases, Phase{Name: name, MeanMs: ms})
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(format string, values ...any) { _, _ = fmt.Fprintf(table, format+"\n", values...) } // Flush has the error
	row("%s: %s", r.Scenario, r.Sentence)
	row("%d trials in %.0f s, %d rooms of %d, %d browsers, seed %d, %d cores", len(r.Trials), r.ElapsedSeconds, r.Parameters.Rooms,
		r.Parameters.Peers, r.Parameters.Browsers, r.Parameters.Seed, r.Cores)
	row("")
	row("verdict\tkept\tbroken\tunchecked")
	for _, v := range r.Verdicts {
		row("%s\t%d\t%d\t%d", v.Name, v.Kept, v.Broken, v.Unchecked)
	}
	r.writeTallies(row)
	for _, kind := range []struct {
		title string
		gaps  *Gaps
	}{{"to the first packet, synthetic people", r.Packets}, {"to the first frame shown, Chromium", r.Frames}} {
		if kind.gaps == nil {
			continue
		}
		row("\n%s, ms after the fault\tcount\tp50\tp95\tp99\tmax", kind.title)
		dist := func(name string, d measure.Distribution) {
			row("%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f", name, d.Count, d.P50, d.P95, d.P99, d.Max)
		}
		dist("each stream", kind.gaps.Streams)
		dist("each client's last stream", kind.gaps.Clients)
		for _, p := range kind.gaps.Phases {
			dist("  "+p.Name, p.Ms)
		}
		if kind.gaps.Missing > 0 {
			row("%d streams did not come back", kind.gaps.Missing)
		}
	}
	if g := r.Frames; g != nil {
		row("\n%d moves of a browser; %d pictures never shown again", g.Moves, g.Missing)
	}
	r.writeSizes(row)
	row("")
	for _, t := range r.Trials {
		for _, v := range t.Verdicts {
			for _, fault := range v.Faults {
				row("trial %d, %s: %s", t.Number, v.Name, fault)
			}
		}
	}
	switch {
	case r.Failure != "":
		row("NOT KEPT: %s", r.Failure)
	case len(r.Trials) == 0:
		row("NOT KEPT: no trial was whole")
	case r.Kept:
		row("every invariant was kept in every trial")
	default:
		row("NOT KEPT")
	}
	if r.Interrupted {
		row("the run was interrupted: these are the trials that were whole")
	}
	return table.Flush()
}
