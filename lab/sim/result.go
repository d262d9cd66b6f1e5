package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is one scenario under every policy.
type Report struct {
	Scenario string   `json:"scenario"`
	Seed     uint64   `json:"seed"`
	Results  []Result `json:"results"`
}

// Result is one policy's run. Peak is the largest load/ceiling of a node, mean that of the cluster.
type Result struct {
	Policy   string    `json:"policy"`
	Evenness []float64 `json:"-"` // peak/mean in each second, from a mean of 10 % on; 0 before
	Median   float64   `json:"peakOverMeanMedian"`
	Most     float64   `json:"peakOverMeanMax"`
	Peak     float64   `json:"peak"`
	Mean     float64   `json:"mean"`      // at its highest
	Over     int       `json:"roomsOver"` // rooms on nodes above their ceilings, at the worst moment
	OverFor  int       `json:"secondsOver"`
	Refusals int       `json:"refusals"` // once for each room and second
	Relieved int       `json:"relieved"` // rooms that left hot nodes
	Waiting  int       `json:"waiting"`  // rooms without a place at the end
	Rooms    int       `json:"rooms"`    // opened in all
	Changes  []Change  `json:"changes"`
	Crowd    *Crowd    `json:"crowd,omitempty"` // of the large room, if there was one
}

// Change is what an event made of the rooms.
type Change struct {
	At        time.Duration `json:"at"`
	What      string        `json:"what"`
	Lost      int           `json:"lost"`      // rooms of dead nodes
	AlsoMoved int           `json:"alsoMoved"` // rooms of living nodes that moved too
	Relieved  int           `json:"relieved"`  // rooms that left hot nodes until the next event
	Fullest   float64       `json:"fullest"`   // load/ceiling of a node then
	Took      time.Duration `json:"took"`      // of this machine, to find every lost room a node
}

// judged is the mean load from which evenness is judged: with few rooms no policy is even.
const judged = 0.1

func (w *world) sample() {
	var load, ceiling, peak float64
	over, r := 0, &w.result
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		load, ceiling = load+float64(n.sent.BitsPerSecond), ceiling+float64(n.ceiling.BitsPerSecond)
		peak = max(peak, n.sent.Share(n.ceiling))
		if !n.sent.Fits(n.ceiling) {
			over += len(n.rooms)
		}
	}
	mean := load / max(ceiling, 1)
	r.Evenness = append(r.Evenness, 0)
	if mean >= judged {
		r.Evenness[len(r.Evenness)-1] = peak / mean
	}
	r.Peak, r.Mean, r.Over = max(r.Peak, peak), max(r.Mean, mean), max(r.Over, over)
	if over > 0 {
		r.OverFor++
	}
	if last := len(r.Changes) - 1; last >= 0 {
		r.Changes[last].Fullest = peak
	}
	r.Waiting, r.Rooms = len(w.placeless), len(w.rooms)
}

// Run plays the scenario under each policy. progress is told of a policy and the time in its run; it may be nil.
func Run(ctx context.Context, s Scenario, seed uint64, progress func(policy string, at, end time.Duration)) (Report, error) {
	out := Report{Scenario: s.Name, Seed: seed}
	for _, choose := range policies() {
		p := choose()
		w := &world{Scenario: s, policy: p, dice: rand.New(rand.NewPCG(seed, 2))} //nolint:gosec // a simulation
		w.result.Policy = p.name()
		err := w.run(ctx, seed, func(at time.Duration) {
			if progress != nil {
				progress(p.name(), at, s.End)
			}
		})
		if err != nil {
			return Report{}, err
		}
		if w.crowd != nil {
			w.result.Crowd = &w.crowd.result
		}
		even := slices.DeleteFunc(slices.Clone(w.result.Evenness), func(x float64) bool { return x == 0 })
		slices.Sort(even)
		if len(even) > 0 {
			w.result.Median, w.result.Most = even[len(even)/2], even[len(even)-1]
		}
		out.Results = append(out.Results, w.result)
	}
	return out, nil
}

// WriteText writes the tables. Without timings the same seed gives the same text on every machine.
func (r Report) WriteText(to io.Writer, timings bool) error {
	fmt.Fprintf(to, "%s, seed %d\n\n", r.Scenario, r.Seed)
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tpeak/mean p50\tmax\tpeak\tmean\trooms over a ceiling\tfor\trefused\twaiting\trelieved\trooms\t")
	for _, p := range r.Results {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.0f %%\t%.0f %%\t%d\t%d s\t%d\t%d\t%d\t%d\t\n",
			p.Policy, p.Median, p.Most, 100*p.Peak, 100*p.Mean, p.Over, p.OverFor, p.Refusals, p.Waiting, p.Relieved, p.Rooms)
	}
	fmt.Fprintln(t)
	r.writeCrowd(t)
	fmt.Fprint(t, "event\tpolicy\trooms lost\tothers moved\trelieved afterwards\tfullest at last\t")
	if timings {
		fmt.Fprint(t, "decided in\t")
	}
	fmt.Fprintln(t)
	for i := range r.Results[0].Changes {
		for _, p := range r.Results {
			c := p.Changes[i]
			fmt.Fprintf(t, "%s %s\t%s\t%d\t%d\t%d\t%.0f %%\t", c.At, c.What, p.Policy, c.Lost, c.AlsoMoved, c.Relieved, 100*c.Fullest)
			if timings {
				fmt.Fprintf(t, "%s\t", c.Took.Round(100*time.Microsecond))
			}
			fmt.Fprintln(t)
		}
	}
	return t.Flush()
}

// writeCrowd writes what became of the large room, if there was one.
func (r Report) writeCrowd(to io.Writer) {
	if r.Results[0].Crowd == nil {
		return
	}
	fmt.Fprintln(to, "large room\tnodes at most\tfullest\tbranches appointed\tgathered\tappointed after that\tpeople moved\trefused\tpeople at last\ton nodes\t")
	for _, p := range r.Results {
		c := p.Crowd
		fmt.Fprintf(to, "%s\t%d\t%.0f %%\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			p.Policy, c.Most, 100*c.Fullest, c.Appointed, c.Gathered, c.Flaps, c.Moved, c.Refused, c.People, c.Nodes)
	}
	fmt.Fprintln(to)
}

const (
	width, height, left, top = 860, 320, 50, 40
	// Above this the picture shows no more.
	highest = 2.5
)

func colours() []string { return []string{"#c0392b", "#e67e22", "#8e44ad", "#7f8c8d", "#0b7a4b"} }

// WriteSVG draws peak/mean over time.
func (r Report) WriteSVG(to io.Writer) error {
	seconds := 1
	for _, p := range r.Results {
		seconds = max(seconds, len(p.Evenness)-1)
	}
	x := func(second int) float64 { return left + float64(second)*(width-left-20)/float64(seconds) }
	y := func(even float64) float64 {
		return top + (highest-min(even, highest))*(height-top-40)/(highest-1)
	}
	_, err := fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="18">%s: the fullest node beside the mean, over %d s</text>
`, width, height, left, r.Scenario, seconds)
	for _, even := range []float64{1, 1.1, 1.25, 1.5, 2, highest} {
		label := fmt.Sprintf("%.2f", even)
		if even == highest {
			label += "+"
		}
		fmt.Fprintf(to, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="8" y="%.1f">%s</text>`+"\n", left, y(even), width-20, y(even)+4, label)
	}
	for i, p := range r.Results {
		fmt.Fprintf(to, `<path fill="none" stroke-width="%d" stroke="%s" d="`, cmp.Compare(i+1, len(r.Results))+2, colours()[i])
		began := false
		for second, even := range p.Evenness {
			if even == 0 {
				began = false
				continue
			}
			fmt.Fprintf(to, "%s%.1f %.1f", map[bool]string{false: "M", true: "L"}[began], x(second), y(even))
			began = true
		}
		fmt.Fprintf(to, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+i*130, height-10, colours()[i], p.Policy)
	}
	if err == nil {
		_, err = fmt.Fprintln(to, "</svg>")
	}
	return err
}
