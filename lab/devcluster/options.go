package devcluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// DefaultListen is the usual port of such servers.
const DefaultListen = "127.0.0.1:7880"

// Options configure a cluster.
type Options struct {
	SFU        int      // default 3, the fewest that show a ring
	Signaling  int      // default 2, so that one may die
	Redis      string   // URL (docs/STORE.md); empty: the embedded store
	Sentinels  int      // real ones, which lead nodes to the embedded store; 0: none
	Listen     string   // host:port of the page; empty: DefaultListen or a free port
	Origins    []string // more host patterns whose pages may use the cluster
	MediaHost  string   // IP address for media; empty: loopback
	TURN       bool     // signaling nodes relay media
	People     int      // drawn ones in DemoRoom; 0: none
	RoomPeople int      // how many a room may have; 0: what media nodes take by default
	Standby    bool     // media nodes stand by for each other
	State      string   // state file; empty: in the user's runtime directory

	// NodeEnv is environment (KEY=VALUE) of a node's first run, by name.
	NodeEnv map[string][]string

	// Hosts are the nodes' network namespaces; other nodes run in ours.
	Hosts map[string]Host

	Verbose bool   // show all log lines
	Binary  string // empty: this one, or in a test a new build
	Out     io.Writer
}

// Defaults are those of `holdfast dev`.
func Defaults() Options { return Options{SFU: 3, Signaling: 2} }

// DemoRoom is where the drawn people are.
const DemoRoom = "hall"

// MaxPeople have different names and fill a page.
const MaxPeople = 24

// of each role
const maxNodes = 32

// Validate returns every fault at once.
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
	if o.Sentinels < 0 || o.Sentinels > maxNodes || o.Sentinels > 0 && o.Redis != "" {
		faults = append(faults, fmt.Errorf("--sentinels %d: give 0 to %d, without --redis", o.Sentinels, maxNodes))
	}
	if o.Sentinels > 0 {
		faults = append(faults, SentinelsAble())
	}
	if o.Listen != "" {
		if _, _, err := net.SplitHostPort(o.Listen); err != nil {
			faults = append(faults, fmt.Errorf("--listen %q: give host:port, for example %s", o.Listen, DefaultListen))
		}
	}
	if o.People < 0 || o.People > MaxPeople {
		faults = append(faults, fmt.Errorf("--people %d: give 1 to %d", o.People, MaxPeople))
	}
	if o.RoomPeople < 0 {
		faults = append(faults, fmt.Errorf("--room-people %d: give how many people a room may have", o.RoomPeople))
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

// parts says what the cluster consists of.
func (o Options) parts() string {
	store := ", a store"
	if o.Redis != "" {
		store = ""
	}
	return count(o.SFU, "media node") + ", " + count(o.Signaling, "signaling node") + store + " and a balancer on this machine"
}

func count(n int, what string) string {
	if n == 1 {
		return "a " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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

func (o Options) turn(name string, choose func(address, earlier string) string) []string {
	if !o.TURN {
		return nil
	}
	return []string{"--turn-listen", choose(o.mediaListen(name), "")}
}

func (o Options) mediaListen(name string) string {
	return net.JoinHostPort(cmp.Or(o.MediaHost, o.host(name).IP), "0")
}
