package testkit

import (
	"context"
	"log/slog"
	"slices"
)

type landmine struct {
	slog.Handler

	lines []string
}

// Landmine returns a logger that panics when one of these lines is logged.
func Landmine(log *slog.Logger, lines ...string) *slog.Logger {
	return slog.New(landmine{log.Handler(), lines})
}

func (l landmine) Enabled(context.Context, slog.Level) bool { return true }

func (l landmine) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(l.lines, r.Message) {
		panic("of a test") //nolint:forbidigo // tests alone lay it
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l landmine) WithAttrs(attrs []slog.Attr) slog.Handler {
	return landmine{l.Handler.WithAttrs(attrs), l.lines}
}

func (l landmine) WithGroup(name string) slog.Handler {
	return landmine{l.Handler.WithGroup(name), l.lines}
}
