package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := measure.NewTable(w)
	p, gaps, rate := r.Parameters, r.Gaps, r.Bitrate
	cut, changing := "", ""
	if r.Interrupted {
		cut = ", interrupted"
	}
	if gaps.StreamsDifferent > gaps.StreamsReceived {
		changing = fmt.Sprintf("; %d different ones, as the speakers changed", gaps.StreamsDifferent)
	}
	refusals := "none"
	if len(r.Refusals) > 0 {
		var parts []string
		for _, code := range slices.Sorted(maps.Keys(r.Refusals)) {
			parts = append(parts, fmt.Sprintf("%s %d", code, r.Refusals[code]))
		}
		refusals = strings.Join(parts, ", ")
	}
	t.Row("\n%d rooms of %d people, %d of them publishing, video %s, %g joins a second, seed %d", p.Rooms, p.PeersPerRoom, p.Publishers, p.Video, p.JoinsPerSecond, p.Seed)
	t.Row("%s, %.1f s%s\n", p.URL, r.ElapsedSeconds, cut)
	t.Row("joined     %d of %d, refused %d", r.People.Joined, r.People.Wanted, r.People.Refused)
	t.Row("streams    %d of %d received, %d silent at the end%s", gaps.StreamsReceived, gaps.StreamsExpected, gaps.Silent, changing)
	t.Row("loss       %d of %d packets (%g %%), %d recovered, %d late, %d twice", r.Loss.Lost, r.Loss.Expected, r.Loss.Percent, r.Loss.Recovered, r.Loss.Late, r.Loss.Duplicates)
	t.Row("bitrate    sent %.1f Mbit/s (%.0f packets/s), received %.1f Mbit/s (%.0f packets/s), over %.1f s",
		rate.SentBitsPerSecond/1e6, rate.SentPacketsPerSecond, rate.ReceivedBitsPerSecond/1e6, rate.ReceivedPacketsPerSecond, rate.WindowSeconds)
	t.Row("sockets    %d lost, %d sessions resumed, %d offers rejected", r.SocketsLost, r.Resumes, r.OffersRejected)
	t.Row("refusals   %s", refusals)
	t.Row("restarts   %d people told, in %d rooms, %d streams not back\n", r.Restarts.Told, len(r.Restarts.Rooms), r.Restarts.NotBack)
	t.Row("milliseconds\t%s", measure.Columns)
	t.Row("socket opened to joined\t%s", r.JoinMs)
	t.Row("socket opened to somebody else's media\t%s", r.FirstMediaMs)
	t.Row("longest gap of a sound\t%s", gaps.AudioMs)
	t.Row("longest gap of a picture\t%s", gaps.VideoMs)
	t.Row("gap of a sound over a restart\t%s", r.Restarts.AudioGapMs)
	t.Row("gap of a picture over a restart\t%s\n", r.Restarts.VideoGapMs)
	t.Row("CPU\tseconds\tcores")
	for _, one := range append(slices.Clone(r.CPU), r.Generator.ProcessCPU) {
		t.Row("%s\t%.2f\t%.2f", one.Process, one.CPUSeconds, one.Cores)
	}
	t.Row("load itself was at most %.1f ms late with a frame, and left %d frames out", r.Generator.LongestDelayMs, r.Generator.FramesLeftOut)
	return t.Flush()
}
