package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// ReportVersion grows when a field changes its name or meaning, not when fields are added.
const ReportVersion = 2

// Report is a run's result.
type Report struct {
	Version        int        `json:"version"`
	Scenario       Name       `json:"scenario"`
	Sentence       string     `json:"sentence"`
	Began          time.Time  `json:"began"`
	ElapsedSeconds float64    `json:"elapsedSeconds"`
	Cores          int        `json:"cores"`
	Parameters     Parameters `json:"parameters"`
	Interrupted    bool       `json:"interrupted"`
	Failure        string     `json:"failure,omitempty"` // what ended the run
	Kept           bool       `json:"kept"`              // every verdict of every trial, of at least one
	Verdicts       []Summary  `json:"verdicts"`
	Packets        *Gaps      `json:"synthetic,omitempty"` // to the first packet; nil without moves. Not of the room on several nodes
	Spread         *Gaps      `json:"spread,omitempty"`    // the same of those people of the room on several nodes who were at the hurt one
	Frames         *Gaps      `json:"browsers,omitempty"`  // to the first shown frame
	Tallies        []Tally    `json:"tallies"`
	Sizes          []SizeGaps `json:"sizes,omitempty"` // of rooms of more than one size
	Trials         []*Trial   `json:"trials"`
	Without        *Report    `json:"without,omitempty"` // the same run without standbys
	Evidence       []Evidence `json:"-"`                 // kept with the logs
}

// Parameters are what the run was asked for.
type Parameters struct {
	Trials      int     `json:"trials,omitempty"`
	SoakMinutes float64 `json:"soakMinutes,omitempty"`
	Rooms       int     `json:"rooms"`
	Peers       int     `json:"peers"`
	Large       int     `json:"large,omitempty"`
	Cameras     int     `json:"cameras"` // on in each room; -1 = all
	Browsers    int     `json:"browsers"`
	Seed        uint64  `json:"seed"`
	Standby     bool    `json:"standby,omitempty"`
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

// Trial is one fault.
type Trial struct {
	Number   int         `json:"number"`
	Scenario Name        `json:"scenario"`
	Began    time.Time   `json:"began"`
	Faults   []Fault     `json:"faults"`
	Verdicts []Verdict   `json:"verdicts"`
	Clients  []ClientGap `json:"clients,omitempty"` // of the rooms that had to move
	Spread   string      `json:"spread,omitempty"`  // the room on several nodes
	Note     string      `json:"note,omitempty"`

	Messages map[string]int `json:"messages"` // by final state

	WholeMs         float64 `json:"wholeMs"`         // from the end of the mending until all was whole
	FullestShare    float64 `json:"fullestShare"`    // the largest part of a ceiling that an unhurt node sent or reserved
	HealthyPausesMs float64 `json:"healthyPausesMs"` // the longest pause in a room that did not have to move
}

func (t *Trial) kept() bool {
	return !slices.ContainsFunc(t.Verdicts, func(v Verdict) bool { return v.Outcome != Kept })
}

func (t *Trial) line() string {
	var faults []string
	for _, f := range t.Faults {
		faults = append(faults, f.Node+" "+f.What)
	}
	parts := []string{fmt.Sprintf("trial %d: %s", t.Number, strings.Join(faults, ", "))}
	if g := gapsOf(t.Clients); g != nil && g.Streams.Count > 0 {
		parts = append(parts, fmt.Sprintf("%d streams back, p50 %.0f ms, max %.0f ms", g.Streams.Count, g.Streams.P50, g.Streams.Max))
		if g.Silent > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d people moved by a standby", g.Silent, g.Moves))
		}
	}
	if t.HealthyPausesMs > 0 {
		parts = append(parts, fmt.Sprintf("elsewhere no pause over %.0f ms", t.HealthyPausesMs))
	}
	parts = append(parts, fmt.Sprintf("fullest survivor at %.0f %%", 100*t.FullestShare))
	for _, state := range slices.Sorted(maps.Keys(t.Messages)) {
		parts = append(parts, fmt.Sprintf("%d messages %s", t.Messages[state], state))
	}
	if t.WholeMs > 0 {
		parts = append(parts, fmt.Sprintf("whole %.1f s after the mending", t.WholeMs/1000))
	}
	if t.kept() {
		parts = append(parts, "every invariant kept")
	}
	for _, v := range t.Verdicts {
		if v.Outcome != Kept {
			parts = append(parts, fmt.Sprintf("BROKEN: %s %s (%s)", v.Name, v.Outcome, v.first()))
		}
	}
	return strings.Join(parts, "; ")
}

func (r *Report) finish(now time.Time) {
	r.ElapsedSeconds = measure.Round1(now.Sub(r.Began).Seconds())
	r.Kept = len(r.Trials) > 0 && r.Failure == ""
	for _, t := range r.Trials {
		r.Kept = r.Kept && t.kept()
		for _, v := range t.Verdicts {
			i := slices.IndexFunc(r.Verdicts, func(s Summary) bool { return s.Name == v.Name })
			if i < 0 {
				i = len(r.Verdicts)
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
		}
	}
	var packets, spread, frames []ClientGap
	for _, t := range r.Trials {
		for _, c := range t.Clients {
			switch {
			case c.Browser:
				frames = append(frames, c)
			case t.Spread != "" && c.Room == t.Spread:
				spread = append(spread, c)
			default:
				packets = append(packets, c)
			}
		}
	}
	r.Spread = gapsOf(spread)
	r.Packets, r.Frames, r.Tallies, r.Sizes = gapsOf(packets), gapsOf(frames), tallies(r.Trials), sizes(r.Trials)
}
