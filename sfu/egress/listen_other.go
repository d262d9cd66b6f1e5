//go:build !linux

package egress

import "net"

// Listen binds a socket; other systems than Linux do not share out what comes to an address among several.
func Listen(address *net.UDPAddr, _ int) ([]*net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	return []*net.UDPConn{socket}, nil
}
