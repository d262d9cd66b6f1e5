// Package top shows a cluster live in a terminal: its nodes, its largest rooms and its last failovers. Where there is no terminal it prints
// plain lines, at first the whole picture and then what changes.
//
// It asks the HTTP API for what the operator's page shows, through the function that it is given, one question at a time. It knows neither
// tokens nor where the API is. Run is where a reader begins; feed asks, screen draws, and live and plain show.
package top

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// Ask returns the API's answer to GET /api/v1/PATH.
type Ask func(ctx context.Context, path string) ([]byte, error)

// Options say how to show a cluster.
type Options struct {
	Ask   Ask
	Every time.Duration // between two pictures; at least 100 ms
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
	// JSON prints one picture a line, for programs.
	JSON bool
}

// Run shows the cluster until ctx ends or a person quits. It returns an error only if the first answer is one: later ones are shown.
func Run(ctx context.Context, o Options) error {
	o.Every = max(o.Every, 100*time.Millisecond)
	f := newFeed(o.Ask)
	first, err := f.next(ctx, usualQuestion())
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case o.JSON:
		return printJSON(ctx, o, f, first)
	case tty.Is(o.In) && tty.Is(o.Out):
		return runLive(ctx, o, f, first)
	default:
		return printPlain(ctx, o, f, first)
	}
}
