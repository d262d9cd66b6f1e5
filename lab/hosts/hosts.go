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
	"time"
)

// ErrUnable is returned if no network namespaces can be made; the error around it says why.
var ErrUnable = errors.New("this needs network namespaces, that is root on Linux, and the commands ip and nft")

// ErrNotAlone is returned outside RunAlone, where the interfaces would be seen.
var ErrNotAlone = errors.New("hosts are made only by a process that RunAlone started")

// ErrNoSuchHost is returned for an unknown name.
var ErrNoSuchHost = errors.New("no such host")

// EndedError is the exit code of a program that RunAlone ran.
type EndedError struct{ Code int } // -1 = by a signal

// Error tells the code.
func (e *EndedError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.Code) }

// Host is a network namespace at the switch.
type Host struct {
	Name  string
	IP    string // its address at the switch
	Space string // a path that names its network namespace while this process lives
}

// Fault hurts a host's cable in both directions. The zero value cuts it.
type Fault struct {
	From    []string      // only between the host and these: hosts' names, or addresses; empty = everybody
	UDP     bool          // only datagrams
	Port    uint16        // only what this TCP port of the host sends and gets; 0 = every one
	Percent int           // so many of a hundred frames, by chance; 0 = all of them
	Delay   time.Duration // every frame is late by this, and none is lost; goes with nothing else
}

const aloneEnv = "HOLDFAST_ALONE" // marks a process that RunAlone started

// Each run has its own namespaces, so the addresses are always the same.
const (
	network  = "10.77.0."
	prefix   = "/24"
	ownIP    = network + "1"
	firstIP  = 11
	maxHosts = 100 // the last address is .110
)
