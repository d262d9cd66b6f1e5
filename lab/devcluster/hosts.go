package devcluster

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Host is a node's network namespace and address.
type Host struct {
	IP    string
	Space string // path of the namespace; empty = ours
}

// ParseHost reads a --host flag, NAME=IP@PATH; PATH is optional.
func ParseHost(given string) (name string, h Host, err error) {
	name, where, _ := strings.Cut(given, "=")
	ip, space, there := strings.Cut(where, "@")
	if h.IP, h.Space = ip, space; name == "" || net.ParseIP(ip) == nil || there != (space != "") {
		return "", Host{}, fmt.Errorf("--host %q: give NAME=IP or NAME=IP@PATH", given)
	}
	return name, h, nil
}

func (o Options) hostFlags() []string {
	var flags []string
	for name, h := range o.Hosts {
		where := name + "=" + h.IP
		if h.Space != "" {
			where += "@" + h.Space
		}
		flags = append(flags, "--host", where)
	}
	return flags
}

func (o Options) host(name string) Host {
	if h, own := o.Hosts[name]; own {
		return h
	}
	return Host{IP: "127.0.0.1"}
}

var errNoHost = errors.New("each node of this cluster has a host of its own, and there is none for one more")
