//go:build !linux

package egress

import "net"

// keepLittle leaves the kernel's buffer small.
func keepLittle(conn *net.TCPConn) { _ = conn.SetWriteBuffer(unsentBytes) }
