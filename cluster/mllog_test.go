package cluster

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A port scan is no member of another cluster.
func TestAnEmptyStreamIsNoOtherCluster(t *testing.T) {
	said := &testkit.Log{}
	config := newNetwork(t).config("one")
	config.Name = "blue"
	one := startLogging(t, config, slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})))
	conn, err := net.Dial("tcp", one.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	testkit.Eventually(t, "the stream to be refused", func() bool { return strings.Contains(said.String(), "unacceptable label") })
	if strings.Contains(said.String(), "another cluster") {
		t.Error(said.String())
	}
}
