package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestTheClusterEndsWithGoRun: `go run . dev` is what people type, and go run passes on
// neither SIGTERM nor SIGKILL.
func TestTheClusterEndsWithGoRun(t *testing.T) {
	if _, err := builtOnce(); err != nil { // so that what follows takes no compilation
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state.json")
			// The context only bounds a test that hangs; the signal below is what counts.
			goRun := exec.CommandContext(context.Background(), "go", "run", "-buildvcs=false", mainPackage, "dev",
				"--sfu", "1", "--signaling", "1", "--listen", "127.0.0.1:0", "--state", state)
			var shown bytes.Buffer
			goRun.Stdout = &shown
			if err := goRun.Start(); err != nil {
				t.Fatal(err)
			}
			var up Status
			testkit.Eventually(t, "the cluster to be ready", func() bool {
				c, err := Find(t.Context(), state)
				if err != nil {
					return false
				}
				up, err = c.Status(t.Context())
				return err == nil && up.Ready
			})
			t.Cleanup(func() { // when the test has failed
				if c, err := open(state); err == nil {
					_ = c.Stop(context.Background())
				}
			})
			if err := goRun.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = goRun.Wait() // it was killed, and the cluster has closed its output
			if typed := "go run -buildvcs=false " + mainPackage + " dev start sfu-2"; !strings.Contains(shown.String(), typed) {
				t.Errorf("nobody can type what the cluster says, want %q:\n%s", typed, shown.String())
			}
			all := []int{up.Pid}
			for _, n := range up.Nodes {
				all = append(all, n.Pid)
			}
			for _, pid := range all {
				testkit.Eventually(t, fmt.Sprintf("process %d to end", pid), func() bool { return gone(pid) })
			}
		})
	}
}
