package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	var text strings.Builder
	p := r.Parameters
	fmt.Fprintf(&text, "\n%d rooms of %d people, %d of them publishing, video %s, %g joins a second, seed %d\n",
		p.Rooms, p.PeersPerRoom, p.Publishers, p.Video, p.JoinsPerSecond, p.Seed)
	cut := ""
	if r.Interrupted {
		cut = ", interrupted"
	}
	fmt.Fprintf(&text, "%s, %.1f s%s\n\n", p.URL, r.ElapsedSeconds, cut)
	fmt.Fprintf(&text, "joined     %d of %d, refused %d\n", r.People.Joined, r.People.Wanted, r.People.Refused)
	fmt.Fprintf(&text, "streams    %d of %d received, %d silent at the end%s\n", r.Gaps.StreamsReceived, r.Gaps.StreamsExpected, r.Gaps.Silent, changing(r.Gaps))
	fmt.Fprintf(&text, "loss       %d of %d packets (%g %%), %d recovered, %d late, %d twice\n",
		r.Loss.Lost, r.Loss.Expected, r.Loss.Percent, r.Loss.Recovered, r.Loss.Late, r.Loss.Duplicates)
	fmt.Fprintf(&text, "bitrate    sent %.1f Mbit/s (%.0f packets/s), received %.1f Mbit/s (%.0f packets/s), over %.1f s\n",
		r.Bitrate.SentBitsPerSecond/1e6, r.Bitrate.SentPacketsPerSecond, r.Bitrate.ReceivedBitsPerSecond/1e6, r.Bitrate.ReceivedPacketsPerSecond, r.Bitrate.WindowSeconds)
	fmt.Fprintf(&text, "sockets    %d lost, %d sessions resumed, %d offers rejected\n", r.SocketsLost, r.Resumes, r.OffersRejected)
	fmt.Fprintf(&text, "refusals   %s\n", refusals(r))
	fmt.Fprintf(&text, "restarts   %d people told, in %d rooms, %d streams not back\n\n", r.Restarts.Told, len(r.Restarts.Rooms), r.Restarts.NotBack)
	r.writeTimes(&text)
	r.writeNodes(&text)
	r.writeCPU(&text)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// changing reports slots that were shared by more streams than there are slots.
func changing(g Gaps) string {
	if g.StreamsDifferent <= g.StreamsReceived {
		return ""
	}
	return fmt.Sprintf("; %d different ones, as the speakers changed", g.StreamsDifferent)
}

func refusals(r *Report) string {
	if len(r.Refusals) == 0 {
		return "none"
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(r.Refusals)) {
		parts = append(parts, fmt.Sprintf("%s %d", code, r.Refusals[code]))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) writeTimes(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "milliseconds\tcount\tp50\tp95\tp99\tmax\t\n")
	for _, row := range []struct {
		name string
		d    measure.Distribution
	}{
		{"socket opened to joined", r.JoinMs},
		{"socket opened to somebody else's media", r.FirstMediaMs},
		{"longest gap of a sound", r.Gaps.AudioMs},
		{"longest gap of a picture", r.Gaps.VideoMs},
		{"gap of a sound over a restart", r.Restarts.AudioGapMs},
		{"gap of a picture over a restart", r.Restarts.VideoGapMs},
	} {
		if row.d.Count == 0 {
			fmt.Fprintf(table, "%s\t0\t-\t-\t-\t-\t\n", row.name)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", row.name, row.d.Count, row.d.P50, row.d.P95, row.d.P99, row.d.Max)
	}
	_ = table.Flush() // into a strings.Builder
	text.WriteString("\n")
}

func (r *Report) writeCPU(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "CPU\tseconds\tcores\t\n")
	for _, process := range r.CPU {
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t\n", process.Process, process.CPUSeconds, process.Cores)
	}
	fmt.Fprintf(table, "load itself\t%.2f\t%.2f\t\n", r.Generator.CPUSeconds, r.Generator.Cores)
	_ = table.Flush() // into a strings.Builder
	fmt.Fprintf(text, "load itself: %d MB, %d goroutines, at most %.1f ms late with a frame, %d frames left out\n",
		r.Generator.ResidentBytes>>20, r.Generator.Goroutines, r.Generator.LongestDelayMs, r.Generator.FramesLeftOut)
}
