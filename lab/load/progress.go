package load

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

const (
	rewriteInterval = time.Second
	lineInterval    = 5 * time.Second
)

func (l *Load) show(ctx context.Context) error {
	if l.options.Progress == nil {
		return nil
	}
	interval, before, after := lineInterval, "", "\n"
	if l.options.Terminal {
		interval, before, after = rewriteInterval, "\r\x1b[K", ""
		defer func() { _, _ = io.WriteString(l.options.Progress, "\n") }()
	}
	last, at := l.totals(), time.Now()
	for backoff.Sleep(ctx, interval) {
		now, present := time.Now(), l.totals()
		line := progressLine(now.Sub(l.began), len(l.people), present, bitrate(last, present, now.Sub(at)))
		if _, err := io.WriteString(l.options.Progress, before+line+after); err != nil {
			return fmt.Errorf("show the progress: %w", err)
		}
		last, at = present, now
	}
	return nil
}

func progressLine(since time.Duration, people int, t totals, b Bitrate) string {
	lost := 0.0
	if t.loss.Expected > 0 {
		lost = 100 * float64(t.loss.Lost()) / float64(t.loss.Expected)
	}
	return fmt.Sprintf("%4.0fs  joined %d/%d  sent %.1f Mbit/s  received %.1f Mbit/s  lost %.3f %%  restarts %d  refusals %d",
		since.Seconds(), t.joined, people, b.SentBitsPerSecond/1e6, b.ReceivedBitsPerSecond/1e6, lost, t.restarts, t.refusals)
}
