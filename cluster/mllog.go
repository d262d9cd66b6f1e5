package cluster

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
)

// newMemberlistLogger gives memberlist a logger that ends in slog. Everything is
// logged at Debug, with memberlist's own level as "severity": it warns of what is
// ordinary here (a refused probe of a killed process), and what matters is logged by members. Only of other clusters nobody else
// would speak.
func newMemberlistLogger(to *slog.Logger, complain func(what string, err error)) *log.Logger {
	return log.New(memberlistWriter{to: to, complain: complain}, "", 0)
}

type memberlistWriter struct {
	to       *slog.Logger
	complain func(what string, err error)
}

// otherLabel is how memberlist says that a packet or a stream comes from a cluster of another name.
const otherLabel = "with unacceptable label"

// Write takes one line such as "[WARN] memberlist: text".
func (w memberlistWriter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(otherLabel)) {
		_, text := parseMemberlistLine(string(line))
		w.complain("a member of another cluster is refused: look at --join and --cluster", errors.New(text))
		return len(line), nil
	}
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
