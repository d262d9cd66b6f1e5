//go:build !linux

package egress

import "net"

// Listen binds one socket.
func Listen(address *net.UDPAddr, _ int) ([]*net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	return []*net.UDPConn{socket}, nil
}
