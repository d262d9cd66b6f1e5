//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cable relays frames: host eth0 === port (relay) near === far = switch.
type cable struct {
	port      string
	ends      [2]*os.File
	relays    [2]*relay
	hurry     chan struct{}
	relaying  sync.WaitGroup
	near, far string
}

const receiveBytes = 8 << 20

// The thread must be in the hub. Frames under way are lost.
func interpose(port string, by time.Duration) (*cable, error) {
	number := rand.Uint32() // names have at most 15 letters
	c := &cable{
		port: port, hurry: make(chan struct{}),
		near: fmt.Sprintf("hfn%08x", number), far: fmt.Sprintf("hff%08x", number),
	}
	err := ip(
		fmt.Sprintf("link add %s type veth peer name %s", c.near, c.far),
		fmt.Sprintf("link set %s up", c.near),
		fmt.Sprintf("link set %s nomaster", port),
		fmt.Sprintf("link set %s master switch", c.far),
		fmt.Sprintf("link set %s up", c.far),
	)
	if err == nil {
		c.ends[0], err = openInterface(port)
	}
	if err == nil {
		c.ends[1], err = openInterface(c.near)
	}
	if err != nil {
		_, undone := c.remove()
		return nil, errors.Join(err, undone)
	}
	for i := range c.ends {
		r := newRelay(c.ends[i], c.ends[1-i], by)
		c.relays[i] = r
		c.relaying.Go(func() { r.run(c.hurry) })
	}
	return c, nil
}

// remove returns how many frames the relay passed. The thread must be in the hub.
func (c *cable) remove() (frames uint64, err error) {
	close(c.hurry)
	for _, end := range c.ends {
		if end != nil { // held frames are still written
			_ = end.SetReadDeadline(time.Now())
		}
	}
	c.relaying.Wait()
	for i, end := range c.ends {
		if end != nil {
			_ = end.Close()
		}
		if c.relays[i] != nil {
			frames += c.relays[i].passed.Load()
		}
	}
	return frames, ip("link del "+c.near, fmt.Sprintf("link set %s master switch", c.port))
}

// PACKET_VNET_HDR keeps the kernel's notes of a frame: veth pairs leave checksums and segmentation to a network card.
func openInterface(name string) (*os.File, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", name, err)
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, receiveBytes},
	} {
		if err := unix.SetsockoptInt(socket, option.level, option.name, option.value); err != nil {
			return nil, errors.Join(fmt.Errorf("set option %d of a packet socket: %w", option.name, err), unix.Close(socket))
		}
	}
	const allProtocols = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
	if err := unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: allProtocols & 0xffff, Ifindex: device.Index}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind a packet socket to %s: %w", name, err), unix.Close(socket))
	}
	return os.NewFile(uintptr(socket), name), nil
}
