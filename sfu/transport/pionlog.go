package transport

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pion/logging"
)

// pionLogs logs what Pion logs, one level lower, because Pion warns of ordinary things.
type pionLogs struct {
	log *slog.Logger
}

func (p pionLogs) NewLogger(scope string) logging.LeveledLogger {
	return pionLogger{log: p.log.With("pion", scope)}
}

type pionLogger struct {
	log *slog.Logger
}

func (p pionLogger) say(level slog.Level, format string, args ...any) {
	ctx := context.Background()
	if p.log.Enabled(ctx, level) {
		p.log.Log(ctx, level, fmt.Sprintf(format, args...))
	}
}

func (p pionLogger) Trace(string)          {}
func (p pionLogger) Tracef(string, ...any) {}

func (p pionLogger) Debug(msg string)                  { p.say(slog.LevelDebug-4, "%s", msg) }
func (p pionLogger) Debugf(format string, args ...any) { p.say(slog.LevelDebug-4, format, args...) }
func (p pionLogger) Info(msg string)                   { p.say(slog.LevelDebug-4, "%s", msg) }
func (p pionLogger) Infof(format string, args ...any)  { p.say(slog.LevelDebug-4, format, args...) }
func (p pionLogger) Warn(msg string)                   { p.say(slog.LevelDebug, "%s", msg) }
func (p pionLogger) Warnf(format string, args ...any)  { p.say(slog.LevelDebug, format, args...) }
func (p pionLogger) Error(msg string)                  { p.say(slog.LevelDebug, "%s", msg) }
func (p pionLogger) Errorf(format string, args ...any) { p.say(slog.LevelDebug, format, args...) }
