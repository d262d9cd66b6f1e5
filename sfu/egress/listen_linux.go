package egress

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen binds several sockets to one address, with a port of the kernel's choice where it names none. What one address sends comes
// to one of them as long as none is closed. The first is bound alone, so that an address which another process has is refused. With an error there
// may be sockets, fewer than were wanted.
func Listen(address *net.UDPAddr, sockets int) ([]*net.UDPConn, error) {
	first, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	bound := []*net.UDPConn{first}
	if sockets == 1 {
		return bound, nil
	}
	raw, err := first.SyscallConn()
	if err == nil {
		err = share("", "", raw)
	}
	sharing := net.ListenConfig{Control: share}
	for err == nil && len(bound) < sockets {
		var next net.PacketConn
		if next, err = sharing.ListenPacket(context.Background(), "udp", first.LocalAddr().String()); err == nil {
			bound = append(bound, next.(*net.UDPConn)) //nolint:forcetypeassert // that is what the network "udp" gives
		}
	}
	return bound, err
}

// share lets other sockets of this user be bound to the same address.
func share(_, _ string, conn syscall.RawConn) error {
	var refused error
	err := conn.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	return errors.Join(err, refused)
}
