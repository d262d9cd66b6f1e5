// Package hosts gives the processes of a lab network namespaces of their own, each
// joined by a virtual cable to one switch, and hurts the cables: cut, lossy, slow.
//
// It promises that nothing outside the run is touched: the run itself is in a new
// namespace (RunAlone), and all of its hosts, cables and rules are in it or in others
// without a name, which the kernel takes away with their last process, however the run
// ends. A cut cable is silent: nobody is told that a packet went nowhere. It needs Linux,
// root, and the commands ip and nft; it knows interfaces and frames, and nothing of
// the processes on the hosts.
package hosts

import (
	"errors"
	"fmt"
)

// ErrUnable is returned where no network namespaces can be made; the error around it says why.
var ErrUnable = errors.New("this needs network namespaces, that is root on Linux, and the commands ip and nft")

// ErrNotAlone is returned by Make in a process that RunAlone did not start: its
// interfaces would be seen outside the run.
var ErrNotAlone = errors.New("hosts are made only by a process that RunAlone started")

// ErrNoSuchHost is returned for a name that Make was not given.
var ErrNoSuchHost = errors.New("no such host")

// EndedError is how a program that RunAlone ran ended, when it was not with 0.
type EndedError struct{ Code int } // -1 = by a signal

// Error tells the code.
func (e *EndedError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.Code) }

// Host is where processes can be put.
type Host struct {
	Name  string
	IP    string // its address at the switch
	Space string // a path that names its network namespace while this process lives
}

// aloneEnv marks a process that RunAlone started.
const aloneEnv = "HOLDFAST_ALONE"

// The addresses: nothing else is in the run's namespaces, so that they can be the same each time.
const (
	network  = "10.77.0."
	prefix   = "/24"
	ownIP    = network + "1"
	firstIP  = 11
	maxHosts = 100 // the last address is .110
)
