package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
)

// lineEvery is how often a line is written. A pause is in every line that it lasts through.
const lineEvery = 250 * time.Millisecond

// Line is what a run was like since the line before.
type Line struct {
	At             time.Time `json:"at"`
	Joined         int       `json:"joined"`
	Streams        int       `json:"streams"`        // shown now, of which a packet has come at least once
	LongestPauseMs float64   `json:"longestPauseMs"` // of a stream that is shown, one that still lasts included
	Restarts       int       `json:"restarts"`       // since the beginning, as are the refusals and the lost sockets
	Refusals       int       `json:"refusals"`
	SocketsLost    int       `json:"socketsLost"`
}

// writeLines writes one JSON object a line, until ctx ends.
func (l *Load) writeLines(ctx context.Context) error {
	if l.options.Lines == nil {
		return nil
	}
	lines := json.NewEncoder(l.options.Lines)
	for backoff.Sleep(ctx, lineEvery) {
		if err := lines.Encode(l.line()); err != nil {
			return fmt.Errorf("write a line of the run: %w", err)
		}
	}
	return nil
}

func (l *Load) line() Line {
	now := l.totals()
	line := Line{At: time.Now(), Joined: now.joined, Restarts: now.restarts, Refusals: now.refusals, SocketsLost: now.socketsLost}
	for _, p := range l.people {
		pause, streams := p.peer.TakePauses(time.Now())
		line.Streams += streams
		line.LongestPauseMs = max(line.LongestPauseMs, float64(pause.Microseconds())/1000)
	}
	return line
}
