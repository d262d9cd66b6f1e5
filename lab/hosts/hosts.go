// Package hosts gives processes network namespaces, joined by virtual cables to one switch, and cuts or slows the cables.
//
// All is in namespaces that end with their last process (RunAlone). A cut cable is silent: no sender gets an error.
// It needs Linux, root, and the commands ip and nft.
package hosts

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnable means that no network namespaces can be made, and why.
var ErrUnable = errors.New("this needs network namespaces, that is root on Linux, and the commands ip and nft")

// ErrNotAlone means that RunAlone did not start this process.
var ErrNotAlone = errors.New("hosts are made only by a process that RunAlone started")

// ErrNoSuchHost is returned for an unknown name.
var ErrNoSuchHost = errors.New("no such host")

// EndedError is the exit code of RunAlone's program.
type EndedError struct{ Code int } // -1 = by a signal

// Error tells the code.
func (e *EndedError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.Code) }

// Host is a namespace at the switch.
type Host struct {
	Name  string
	IP    string
	Space string // path, while this process lives
}

// Fault hurts both directions. The zero value cuts the cable.
type Fault struct {
	From    []string // host names or addresses; empty = all
	UDP     bool
	Port    uint16        // the host's TCP port; 0 = all
	Percent int           // of frames, at random; 0 = all
	Delay   time.Duration // all frames are late, none lost; with no other field
}

const aloneEnv = "HOLDFAST_ALONE"

const (
	network  = "10.77.0."
	prefix   = "/24"
	ownIP    = network + "1"
	firstIP  = 11
	maxHosts = 100
)
