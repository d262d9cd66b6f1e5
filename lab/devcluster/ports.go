package devcluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

const (
	lowestPort = 20_000 // servers with fixed ports are mostly below
	// Linux gives the ports from here on to sockets that ask for none in particular.
	lowestEphemeral  = 32_768
	highestEphemeral = 60_999
	fewestPorts      = 1_000
	portTries        = 200
)

// ports chooses the ports of a cluster's nodes outside the range that the kernel takes ports from by itself. A dead node's port would else
// soon be some other socket's, and the node could not come back at it. The supervisor's mutex guards it.
type ports struct {
	first, count int
	next         int // from first
}

func newPorts() *ports {
	low, high := ephemeral("/proc/sys/net/ipv4/ip_local_port_range")
	p := &ports{}
	p.first, p.count = portsBeside(low, high)
	p.next = rand.IntN(p.count) //nolint:gosec // so that two clusters rarely try the same
	return p
}

// ephemeral reads the kernel's range. Where there is no such file, Linux's default is as good as any.
func ephemeral(path string) (low, high int) {
	content, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Sscan(string(content), &low, &high)
	}
	if err != nil {
		return lowestEphemeral, highestEphemeral
	}
	return low, high
}

// portsBeside returns the ports that are not in the kernel's range: those below, or if they are few those above. Where both are few, ports
// may be taken by others, and are then replaced.
func portsBeside(low, high int) (first, count int) {
	switch {
	case low-lowestPort >= fewestPorts:
		return lowestPort, min(low, lowestEphemeral) - lowestPort
	case 65_535-high >= fewestPorts:
		return high + 1, 65_535 - high
	default:
		return lowestPort, lowestEphemeral - lowestPort
	}
}

// at returns host:port with a port that nobody was given lately and, by free, nobody uses.
func (p *ports) at(host string, free func(address string) error) string {
	for range portTries {
		address := net.JoinHostPort(host, strconv.Itoa(p.first+p.next))
		p.next = (p.next + 1) % p.count
		if free(address) == nil {
			return address
		}
	}
	return net.JoinHostPort(host, "0")
}

// portFree binds a TCP and a UDP socket for a moment: gossip and media use both.
func portFree(address string) error {
	if err := listens(address); err != nil {
		return err
	}
	u, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return u.Close()
}

// listens binds a TCP socket for a moment.
func listens(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// unknownPort is for addresses of another network namespace.
func unknownPort(string) error { return nil }
