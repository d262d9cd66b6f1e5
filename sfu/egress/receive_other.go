//go:build !linux

package egress

import (
	"net"
	"net/netip"
)

func receive(conn *net.UDPConn, take func(b []byte, from netip.AddrPort)) error {
	b := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return err
		}
		take(b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
	}
}
