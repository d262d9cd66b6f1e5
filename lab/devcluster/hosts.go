package devcluster

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Host is a network namespace that a node runs in, and its address there.
type Host struct {
	IP    string
	Space string // a path of the namespace; empty = ours
}

// ParseHost reads NAME=IP@PATH, the form of a --host flag.
func ParseHost(given string) (name string, h Host, err error) {
	name, where, _ := strings.Cut(given, "=")
	h.IP, h.Space, _ = strings.Cut(where, "@")
	if name == "" || net.ParseIP(h.IP) == nil || h.Space == "" {
		return "", Host{}, fmt.Errorf("--host %q: give NAME=IP@PATH", given)
	}
	return name, h, nil
}

func (o Options) hostFlags() []string {
	var flags []string
	for name, h := range o.Hosts {
		flags = append(flags, "--host", name+"="+h.IP+"@"+h.Space)
	}
	return flags
}

func (o Options) host(name string) Host {
	if h, own := o.Hosts[name]; own {
		return h
	}
	return Host{IP: "127.0.0.1"}
}

// errNoHost refuses one more node if each has a host of its own.
var errNoHost = errors.New("each node of this cluster has a host of its own, and there is none for one more")
