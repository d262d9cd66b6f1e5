package cluster

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// newMemberlistLogger gives memberlist a logger that ends in slog. Everything is
// logged at Debug, with memberlist's own level as "severity": it warns of what is
// ordinary here (a refused probe of a killed process), and what matters is logged by members.
func newMemberlistLogger(to *slog.Logger) *log.Logger {
	return log.New(memberlistWriter{to: to}, "", 0)
}

type memberlistWriter struct{ to *slog.Logger }

// Write takes one line such as "[WARN] memberlist: text".
func (w memberlistWriter) Write(line []byte) (int, error) {
	if w.to.Enabled(context.Background(), slog.LevelDebug) {
		severity, text := parseMemberlistLine(string(line))
		w.to.Debug(text, "component", "memberlist", "severity", severity)
	}
	return len(line), nil
}

// parseMemberlistLine splits a line into its level, "INFO" where it has none,
// and its text.
func parseMemberlistLine(line string) (severity, text string) {
	line = strings.TrimSpace(line)
	severity = "INFO"
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && strings.HasPrefix(line, "[") {
		severity, line = inner, rest
	}
	return severity, strings.TrimPrefix(line, "memberlist: ")
}
