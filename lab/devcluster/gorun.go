package devcluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// goRunPoll is how often a supervisor under `go run` looks for its parent.
const goRunPoll = 250 * time.Millisecond

// EndWithGoRun calls end when the `go run` that started this process is gone: it does not pass on a SIGTERM and cannot
// pass on a SIGKILL. A process that something else started is left alone, as under nohup.
func EndWithGoRun(ctx context.Context, end func()) {
	parent := os.Getppid()
	if !startedByGoRun(parent) {
		return
	}
	go func() {
		tick := time.NewTicker(goRunPoll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					end()
					return
				}
			}
		}
	}()
}

// startedByGoRun recognizes the compiler's cache in our path, or, on Linux, the go command as our parent.
func startedByGoRun(parent int) bool {
	self, err := os.Executable()
	if err == nil && strings.Contains(self, "go-build") {
		return true
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	return err == nil && strings.TrimSpace(string(name)) == "go"
}
