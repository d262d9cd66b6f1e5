// Package child is the contract between a development cluster's supervisor and the processes that it starts.
//
// A child ends when its supervisor does: the supervisor holds the other end of the child's standard input. It reports its addresses as
// one line of JSON on standard output once its listeners are bound, and once more if it binds others. A signaling node that was given the
// right may ask the supervisor to kill a node.
//
// Nodes use it, so it knows nothing of the lab. Outside a development cluster nothing of it takes effect. Begin with Supervised.
package child

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// SupervisedEnv is the environment variable that is "1" in a child.
const SupervisedEnv = "HOLDFAST_SUPERVISED"

// The keys of Report.Addresses.
const (
	AddressHTTP     = "http"
	AddressTURN     = "turn"
	AddressTURNTLS  = "turns"
	AddressControl  = "control"
	AddressMedia    = "media"
	AddressGossip   = "gossip"
	AddressStore    = "store"
	AddressSentinel = "sentinel"
	AddressMetrics  = "metrics"
)

// Report is one line of JSON, written once the listeners are bound. Addresses are host:port by kind.
type Report struct {
	Pid       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// Supervised reports whether this process is a supervisor's child.
func Supervised() bool { return os.Getenv(SupervisedEnv) == "1" }

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
