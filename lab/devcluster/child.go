package devcluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// supervisedEnv tells a process that a supervisor started it: its standard input
// is a pipe that stays open while the supervisor lives, and the first line of its
// standard output is its Report.
const supervisedEnv = "HOLDFAST_SUPERVISED"

// Report is what a child says about itself, as one line of JSON, once its
// listeners are bound. Children bind port 0 and report what they got, so that
// two of them can never be given the same port.
type Report struct {
	Pid       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// Supervised reports whether this process is a supervisor's child.
func Supervised() bool { return os.Getenv(supervisedEnv) == "1" }

// EndWithParent calls end when the supervisor is gone, which shows as the end of
// the inherited pipe. It is the portable half of the promise; on Linux the kernel
// also kills the child, so that a stopped one ends too.
func EndWithParent(pipe io.Reader, end func()) {
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		end()
	}()
}

// Announce writes the report of this process.
func Announce(w io.Writer, addresses map[string]string) error {
	line, err := json.Marshal(Report{Pid: os.Getpid(), Addresses: addresses})
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("report addresses to the supervisor: %w", err)
	}
	return nil
}
