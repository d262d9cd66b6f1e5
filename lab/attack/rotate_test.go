//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheClusterKeyIsRotatedUnderACall replaces the key of running nodes, step by step, while two people call each other.
// Nobody is disconnected, no node is taken for dead, and somebody can join after each step.
func TestTheClusterKeyIsRotatedUnderACall(t *testing.T) {
	t.Parallel() // most of it is waiting
	file := filepath.Join(t.TempDir(), "cluster.key")
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old, next := strings.Repeat("old", 12), strings.Repeat("next", 9)
	write(old)
	s := newStage(t, "HOLDFAST_CLUSTER_KEY_FILE="+file)
	for step, lines := range [][]string{{old, next}, {next, old}, {next}} {
		write(lines...)
		for _, name := range []string{"signaling-1", "sfu-1"} {
			s.eventually(name+" has read the keys", func() error {
				said, err := s.cluster.Logs(t.Context(), name)
				if n := strings.Count(said, "keys replaced"); err == nil && n <= step {
					err = fmt.Errorf("%d times so far", n)
				}
				return err
			})
		}
		s.newcomer(fmt.Sprint("newcomer-", step))
	}
	s.unharmed()
	for _, name := range []string{"signaling-1", "sfu-1"} {
		said, err := s.cluster.Logs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "node down") || strings.Contains(said, old) || strings.Contains(said, next) {
			t.Errorf("the log of %s is\n%s", name, said)
		}
	}
}
