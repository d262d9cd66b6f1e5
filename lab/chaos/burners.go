package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// burners are processes that only use CPU. ulimit ends each of them even if this process cannot.
type burners struct {
	stop  func()
	ended sync.WaitGroup
	once  sync.Once
	from  cpuTime
	share float64
}

// burnGrace is CPU time beyond the run's own.
const burnGrace = 30 * time.Second

func startBurners(ctx context.Context, n int, lasting time.Duration) (*burners, error) {
	ctx, stop := context.WithCancel(ctx)
	b := &burners{stop: stop, from: readCPUTime()}
	for range n {
		// A single process, which SIGKILL ends: timeout(1) could end alone and leave its child burning.
		burn := fmt.Sprintf("ulimit -t %d && while :; do :; done", int((lasting + burnGrace).Seconds()))
		cmd := exec.CommandContext(ctx, "sh", "-c", burn) //nolint:gosec // a number
		if err := cmd.Start(); err != nil {
			b.end()
			return nil, fmt.Errorf("keep the machine busy: %w", err)
		}
		b.ended.Go(func() { _ = cmd.Wait() }) // it ends by our signal
	}
	return b, nil
}

// end ends them and returns the busy share of all cores since the start; -1 if unknown.
func (b *burners) end() float64 {
	b.once.Do(func() {
		b.share = readCPUTime().busySince(b.from)
		b.stop()
		b.ended.Wait()
	})
	return b.share
}

// cpuTime is what the kernel has counted since boot, in ticks; zero if unknown.
type cpuTime struct{ all, idle uint64 }

func readCPUTime() cpuTime {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var t cpuTime
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil || i > 8 { // the name of the line; guests are counted as users already
			continue
		}
		t.all += ticks
		if i == 4 || i == 5 { // idle, and waiting for a disk
			t.idle += ticks
		}
	}
	return t
}

// busySince is the share of time since from in which cores worked; -1 if unknown.
func (t cpuTime) busySince(from cpuTime) float64 {
	if t.all <= from.all {
		return -1
	}
	return 1 - float64(t.idle-from.idle)/float64(t.all-from.all)
}
