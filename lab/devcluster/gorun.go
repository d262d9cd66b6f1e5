package devcluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const goRunPoll = 250 * time.Millisecond

// EndWithGoRun calls end when the `go run` that started this process is gone: it passes no SIGTERM or SIGKILL on.
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

// startedByGoRun looks for the compiler's cache in our path, or on Linux for go as the parent.
func startedByGoRun(parent int) bool {
	self, err := os.Executable()
	if err == nil && strings.Contains(self, "go-build") {
		return true
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	return err == nil && strings.TrimSpace(string(name)) == "go"
}
