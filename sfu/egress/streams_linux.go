package egress

import (
	"net"

	"golang.org/x/sys/unix"
)

// keepLittle has the kernel take little more of a connection than it can send at once.
func keepLittle(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes) // Without it pictures are late a little longer.
	})
}
