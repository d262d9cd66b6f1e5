package cluster

import (
	"errors"
	"strings"
)

// otherLabel is memberlist's text for a packet or stream of a cluster with another name.
const otherLabel = "with unacceptable label"

// memberlistWriter takes memberlist's log lines. They are logged at Debug, with memberlist's
// level as "severity": it warns of ordinary things such as a refused probe, and members logs
// what matters. Only a foreign cluster is reported by nobody else.
type memberlistWriter struct{ c *Cluster }

// Write takes one line such as "[WARN] memberlist: text".
func (w memberlistWriter) Write(line []byte) (int, error) {
	severity, text := parseMemberlistLine(string(line))
	if strings.Contains(text, otherLabel) {
		w.c.logDropped("a member of another cluster is refused: look at --join and --cluster", errors.New(text))
	} else {
		w.c.log.Debug(text, "component", "memberlist", "severity", severity)
	}
	return len(line), nil
}

// parseMemberlistLine splits a line into its level, "INFO" where it has none, and its text.
func parseMemberlistLine(line string) (severity, text string) {
	line = strings.TrimSpace(line)
	severity = "INFO"
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && strings.HasPrefix(line, "[") {
		severity, line = inner, rest
	}
	return severity, strings.TrimPrefix(line, "memberlist: ")
}
