package devcluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// supervisedEnv marks a child: its standard input stays open while the supervisor lives, and the first line of its
// standard output is its Report.
const supervisedEnv = "HOLDFAST_SUPERVISED"

// Report is one line of JSON, written once the listeners are bound. Children bind port 0, so that no two get the same
// port.
type Report struct {
	Pid       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// Supervised reports whether this process is a supervisor's child.
func Supervised() bool { return os.Getenv(supervisedEnv) == "1" }

// EndWithParent calls end when the supervisor is gone, which closes the inherited pipe. On Linux the kernel kills the
// child as well, so that a stopped one ends too.
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
