package cluster

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A node of another cluster that holds the same key is refused, and the log names its cluster.
func TestMemberOfAnotherClusterIsRefused(t *testing.T) {
	said := &testkit.Log{}
	net := newNetwork(t)
	config := net.config("blue-1")
	config.Name = "blue"
	blue := startLogging(t, config, slog.New(slog.NewTextHandler(said, nil)))
	config = net.config("red-1")
	config.Name, config.Join, config.Solo = "red", []string{blue.LocalAddr()}, true
	red := start(t, config)
	testkit.Eventually(t, "the log to name the other cluster", func() bool {
		return strings.Contains(said.String(), "another cluster") && strings.Contains(said.String(), "red")
	})
	if a, b := len(blue.View().Nodes), len(red.View().Nodes); a != 1 || b != 1 {
		t.Errorf("%d and %d members, want each alone", a, b)
	}
}
