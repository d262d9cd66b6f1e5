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

// burners are processes that do nothing but use CPU. The kernel ends each when it has used as much as
// it can in its time and a little more, whatever becomes of us.
type burners struct {
	stop  func()
	ended sync.WaitGroup
	once  sync.Once
	from  cpuTime
	share float64
}

// burnGrace is how much more CPU than it needs a burner may use.
const burnGrace = 30 * time.Second

// startBurners starts n of them.
func startBurners(ctx context.Context, n int, lasting time.Duration) (*burners, error) {
	ctx, stop := context.WithCancel(ctx)
	b := &burners{stop: stop, from: readCPUTime()}
	for range n {
		// One process, which SIGKILL ends. A timeout(1) around it that is told to end while it forks
		// ends alone, and leaves behind what burns a core for ever.
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

// end ends them and says which part of all cores was busy since the start; -1 where nobody knows.
func (b *burners) end() float64 {
	b.once.Do(func() {
		b.share = readCPUTime().busySince(b.from)
		b.stop()
		b.ended.Wait()
	})
	return b.share
}

// cpuTime is what the kernel has counted since boot, in its ticks; zero where it does not say.
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

// busySince is the part of the time since from in which cores worked.
func (t cpuTime) busySince(from cpuTime) float64 {
	if t.all <= from.all {
		return -1
	}
	return 1 - float64(t.idle-from.idle)/float64(t.all-from.all)
}
