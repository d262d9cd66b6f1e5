package egress

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen binds several sockets to one address; port 0 takes a free one. A sender's packets come to one socket.
// The first is bound alone, so that a used address is refused. Fewer sockets may come with an error.
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

func share(_, _ string, conn syscall.RawConn) error {
	var refused error
	err := conn.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	return errors.Join(err, refused)
}
