package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), what)
}

// A node of another cluster that holds the same key is refused, and the log names its cluster.
func TestMemberOfAnotherClusterIsRefused(t *testing.T) {
	said := &lines{}
	net := newNetwork(t)
	config := net.config("blue-1")
	config.Name = "blue"
	blue := startLogging(t, config, slog.New(slog.NewTextHandler(said, nil)))
	config = net.config("red-1")
	config.Name, config.Join, config.Solo = "red", []string{blue.LocalAddr()}, true
	red := start(t, config)
	testkit.Eventually(t, "the log to name the other cluster", func() bool { return said.has("another cluster") && said.has("red") })
	if a, b := len(blue.View().Nodes), len(red.View().Nodes); a != 1 || b != 1 {
		t.Errorf("%d and %d members, want each alone", a, b)
	}
}
