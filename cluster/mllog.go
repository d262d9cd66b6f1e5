package cluster

import (
	"errors"
	"strings"
)

const (
	otherLabel = "with unacceptable label"
	// noLabel is that of an empty stream, which a port scan or a closing member leaves.
	noLabel = otherLabel + ` ""`
)

// memberlistWriter reads memberlist's log. memberlist warns of ordinary things; only a foreign cluster is reported by
// nobody else.
type memberlistWriter struct{ c *Cluster }

func (w memberlistWriter) Write(line []byte) (int, error) {
	severity, text := parseMemberlistLine(string(line))
	if strings.Contains(text, otherLabel) && !strings.Contains(text, noLabel) {
		w.c.logDropped("a member of another cluster is refused: look at --join and --cluster", errors.New(text))
	} else {
		w.c.log.Debug(text, "component", "memberlist", "severity", severity)
	}
	return len(line), nil
}

func parseMemberlistLine(line string) (severity, text string) {
	line = strings.TrimSpace(line)
	severity = "INFO"
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && strings.HasPrefix(line, "[") {
		severity, line = inner, rest
	}
	return severity, strings.TrimPrefix(line, "memberlist: ")
}
