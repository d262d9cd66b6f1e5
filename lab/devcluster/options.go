package devcluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// DefaultListen is the port that users of such servers expect, if it is free.
const DefaultListen = "127.0.0.1:7880"

// Options say what cluster to run.
type Options struct {
	SFU       int      // media nodes; 3 by default, the fewest that show a ring
	Signaling int      // signaling nodes; 2 by default, so that one may die
	Redis     string   // a store's URL (docs/STORE.md); empty runs the embedded store
	Listen    string   // host:port of the page; empty takes DefaultListen, or a free port when that is taken
	Origins   []string // hosts (patterns) whose pages may use the cluster, besides those of this machine
	MediaHost string   // the IP address of this machine that media is bound to; loopback when empty
	TURN      bool     // signaling nodes relay media
	State     string   // path of the state file; empty chooses one in the user's runtime directory

	// NodeEnv is extra environment (KEY=VALUE) of a node's first run, by name.
	NodeEnv map[string][]string

	// Hosts are the network namespaces of nodes, by name; the others run in ours.
	Hosts map[string]Host

	Verbose bool      // show every log line of every node
	Binary  string    // the holdfast binary; the supervisor re-executes itself, a test builds one when empty
	Out     io.Writer // what people read
}

// Defaults returns the options of `holdfast dev` without flags.
func Defaults() Options { return Options{SFU: 3, Signaling: 2} }

// maxNodes bounds each role.
const maxNodes = 32

// Validate returns every fault of the options at once.
func (o Options) Validate() error {
	var faults []error
	if o.SFU < 1 || o.SFU > maxNodes {
		faults = append(faults, fmt.Errorf("--sfu %d: give 1 to %d media nodes", o.SFU, maxNodes))
	}
	if o.Signaling < 1 || o.Signaling > maxNodes {
		faults = append(faults, fmt.Errorf("--signaling %d: give 1 to %d signaling nodes", o.Signaling, maxNodes))
	}
	if o.Redis != "" && !strings.Contains(o.Redis, "://") {
		faults = append(faults, fmt.Errorf("--redis %q: give a URL such as redis://127.0.0.1:6379", o.Redis))
	}
	if o.Listen != "" {
		if _, _, err := net.SplitHostPort(o.Listen); err != nil {
			faults = append(faults, fmt.Errorf("--listen %q: give host:port, for example %s", o.Listen, DefaultListen))
		}
	}
	if o.MediaHost != "" && net.ParseIP(o.MediaHost) == nil {
		faults = append(faults, fmt.Errorf("--media-host %q: give an IP address of this machine", o.MediaHost))
	}
	for name, env := range o.NodeEnv {
		for _, pair := range env {
			if !strings.Contains(pair, "=") {
				faults = append(faults, fmt.Errorf("--node-env %s:%s: give NAME:KEY=VALUE", name, pair))
			}
		}
	}
	return errors.Join(faults...)
}

// origins are the signaling nodes' --origin flags; a named host of the page is one of them.
func (o Options) origins() []string {
	var flags []string
	for _, origin := range o.Origins {
		flags = append(flags, "--origin", origin)
	}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil && host != "" && net.ParseIP(host) == nil {
		flags = append(flags, "--origin", host)
	}
	return flags
}

// turn are the flags of a signaling node that relays.
func (o Options) turn(name string) []string {
	if !o.TURN {
		return nil
	}
	return []string{"--turn-listen", o.mediaListen(name)}
}

// mediaListen is where a media node binds its media socket: a free port of an address that browsers reach.
func (o Options) mediaListen(name string) string {
	return net.JoinHostPort(cmp.Or(o.MediaHost, o.host(name).IP), "0")
}
