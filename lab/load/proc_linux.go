package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// USER_HZ, the same on all of Go's architectures
const ticksPerSecond = 100

var errBadStat = errors.New("it does not have the form of proc_pid_stat(5)")

// user and system time
func cpuTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of pid %d: %w", pid, err)
	}
	return parseStat(content)
}

// The second field, the name, may contain anything.
func parseStat(content []byte) (time.Duration, error) {
	const utime, stime = 11, 12 // counted from the state, which follows the name
	end := bytes.LastIndexByte(content, ')')
	fields := bytes.Fields(content[end+1:])
	if end < 0 || len(fields) <= stime {
		return 0, errBadStat
	}
	var ticks time.Duration
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseUint(string(fields[i]), 10, 40)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errBadStat, err)
		}
		ticks += time.Duration(n)
	}
	return ticks * (time.Second / ticksPerSecond), nil
}
