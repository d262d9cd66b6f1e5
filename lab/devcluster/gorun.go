package devcluster

import (
	"context"
	"os"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
)

const goRunPoll = 250 * time.Millisecond

// EndWithGoRun calls end when the `go run` that started this process is gone: it passes no SIGTERM or SIGKILL on.
func EndWithGoRun(ctx context.Context, end func()) {
	if !invocation.ByGoRun() {
		return
	}
	parent := os.Getppid()
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
