package devcluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// supervisedEnv marks a child: the supervisor's end closes its standard input, and its first line of output is its Report.
const supervisedEnv = "HOLDFAST_SUPERVISED"

// Report is one line of JSON, written once the listeners are bound.
type Report struct {
	Pid       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// Supervised reports whether this process is a supervisor's child.
func Supervised() bool { return os.Getenv(supervisedEnv) == "1" }

// EndWithParent calls end when the supervisor's end closes the pipe. On Linux the kernel also kills the child.
func EndWithParent(pipe io.Reader, end func()) {
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		end()
	}()
}

// Announce writes this process's report.
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
