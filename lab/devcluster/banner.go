package devcluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

func (s *Supervisor) banner(took time.Duration) {
	status, self := s.Status(), invocation.Name()
	var b strings.Builder
	b.WriteString("It is up (" + took.Round(100*time.Millisecond).String() + "). " + s.invitation() + ":\n\n")
	b.WriteString("    " + s.paint(tty.Bold, s.invitationPage(status.Page)) + "\n\n")
	b.WriteString("Then kill the media node of your call, with the button in the page's last line, or from another terminal:\n\n")
	for _, line := range [][2]string{
		{"dev kill sfu-2", "kills a media node"},
		{"dev start sfu-2", "starts it again"},
		{"rooms", "which node has which room"},
		{"dev status", "processes and ports"},
		{"help", "everything else"},
	} {
		b.WriteString("    " + fmt.Sprintf("%-*s", len(self)+18, self+" "+line[0]) + s.paint(tty.Dim, line[1]) + "\n")
	}
	b.WriteString("\nWhat happens is told below; the logs are in " + status.LogDir + ". Ctrl-C ends everything.\n\n")
	s.out.print([]byte(b.String()))
}

func (s *Supervisor) invitation() string {
	if s.options.People > 0 {
		return "Drawn people are in the room " + DemoRoom + ". Open it, and join them"
	}
	return "Open the page in two tabs, and join the same room in both"
}

func (s *Supervisor) invitationPage(page string) string {
	if s.options.People > 0 {
		return page + "?room=" + DemoRoom
	}
	return page
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
