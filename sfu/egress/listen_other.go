//go:build !linux

package egress

import "net"

// Listen binds one socket: only Linux shares an address among several.
func Listen(address *net.UDPAddr, _ int) ([]*net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	return []*net.UDPConn{socket}, nil
}
