//go:build !linux

package egress

import "net"

func keepLittle(conn *net.TCPConn) { _ = conn.SetWriteBuffer(unsentBytes) }
