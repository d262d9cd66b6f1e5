package devcluster

import (
	"strings"
	"time"
)

func (s *Supervisor) banner(took time.Duration) {
	status := s.Status()
	var b strings.Builder
	b.WriteString("\n  Holdfast is up (" + took.Round(10*time.Millisecond).String() + "). Open the page in two tabs:\n\n")
	b.WriteString("    " + status.Page + "\n\n")
	for _, n := range status.Nodes {
		b.WriteString("  " + n.line() + "\n")
	}
	b.WriteString("\n  From another terminal: holdfast dev status | kill NAME | start NAME | add-sfu | stop\n")
	b.WriteString("  Logs: " + status.LogDir + "/NAME.log\n")
	b.WriteString("  Ctrl-C ends everything.\n\n")
	s.out.print([]byte(b.String()))
}

// Table describes the cluster for `holdfast dev status`.
func (s Status) Table() string {
	var b strings.Builder
	state := "not ready yet"
	switch {
	case s.Ready:
		state = "ready"
	case len(s.Lacks) > 0:
		var roles []string
		for _, role := range s.Lacks {
			roles = append(roles, string(role))
		}
		state = "not ready: nobody can join without a process that runs as " + strings.Join(roles, " and ")
	}
	b.WriteString(s.Page + "  (" + state + ")\n")
	for _, n := range s.Nodes {
		b.WriteString(n.line() + "\n")
	}
	return b.String()
}
