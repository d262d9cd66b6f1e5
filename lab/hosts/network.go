//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Network is a switch with hosts, and this process at ownIP.
type Network struct {
	hub   *space // the switch, without an address
	hosts map[string]*host

	mu sync.Mutex // guards the cables
}

type host struct {
	Host
	space *space
	port  string
	fault fault
}

// Make needs a process that is alone (RunAlone).
func Make(names []string) (*Network, error) {
	if os.Getenv(aloneEnv) == "" {
		return nil, ErrNotAlone
	}
	if len(names) > maxHosts {
		return nil, fmt.Errorf("%d hosts: %d fit", len(names), maxHosts)
	}
	hub, err := newSpace()
	if err != nil {
		return nil, err
	}
	n := &Network{hub: hub, hosts: make(map[string]*host)}
	if err := n.make(names); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Network) make(names []string) error {
	err := n.hub.do(func() error {
		return ip("link add switch type bridge", "link set switch up")
	})
	if err != nil {
		return err
	}
	// Browsers and Pion use the default route's address.
	err = onOwnThread(prepare)
	if err == nil {
		err = n.plug("own", func(f func() error) error { return onOwnThread(f) }, ownIP, "route add default dev eth0")
	}
	if err != nil {
		return err
	}
	for i, name := range names {
		s, err := newSpace()
		if err != nil {
			return err
		}
		address := fmt.Sprintf("%s%d", network, firstIP+i)
		h := &host{Host: Host{Name: name, IP: address, Space: s.path()}, space: s, port: fmt.Sprintf("port%d", i)}
		n.hosts[name] = h
		if err := n.plug(h.port, s.do, address); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) plug(port string, inside func(func() error) error, address string, more ...string) error {
	err := inside(func() error {
		return ip(append([]string{
			fmt.Sprintf("link add eth0 type veth peer name %s netns %s", port, n.hub.path()),
			fmt.Sprintf("addr add %s%s dev eth0", address, prefix),
			"link set eth0 up",
		}, more...)...)
	})
	if err != nil {
		return err
	}
	return n.hub.do(func() error {
		return ip(fmt.Sprintf("link set %s master switch", port), fmt.Sprintf("link set %s up", port))
	})
}

// Host finds a host.
func (n *Network) Host(name string) (Host, error) {
	h, known := n.hosts[name]
	if !known {
		return Host{}, fmt.Errorf("%w: %s", ErrNoSuchHost, name)
	}
	return h.Host, nil
}

// Close mends the cables and releases the namespaces.
func (n *Network) Close() error {
	var errs []error
	for _, h := range n.hosts {
		if _, err := n.Mend(h.Name); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, h.space.file.Close())
	}
	return errors.Join(append(errs, n.hub.file.Close())...)
}
