package sfu

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/pion/ice/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// mediaMux is Pion's mux over the media socket, with a list of addresses of its own,
// made once. Pion would ask the kernel for every interface at every connection,
// offer IPv6 addresses of a socket bound to 0.0.0.0, and offer several addresses
// behind one socket, of which it then cannot tell which one a packet was sent to: it may
// answer over another path than the one the client chose. So a socket that is bound
// to all interfaces is offered by one address of each family; a machine with
// several networks names the one it serves. And it tells the socket which ICE users there are.
type mediaMux struct {
	*ice.UDPMuxDefault

	socket    *egress.Conn
	addresses []net.Addr
}

func newMediaMux(mux *ice.UDPMuxDefault, socket *egress.Conn, cfg Config) *mediaMux {
	m := &mediaMux{UDPMuxDefault: mux, socket: socket}
	bound, ok := mux.LocalAddr().(*net.UDPAddr)
	if !ok {
		return m
	}
	var usable []*net.UDPAddr
	for _, address := range mux.GetListenAddresses() {
		if udp, ok := address.(*net.UDPAddr); ok && offered(udp.IP, bound.IP, cfg) {
			usable = append(usable, udp)
		}
	}
	// Loopback addresses last: they reach nobody else.
	slices.SortStableFunc(usable, func(a, b *net.UDPAddr) int { return cmp.Compare(last(a.IP), last(b.IP)) })
	families := map[bool]bool{}
	for _, udp := range usable {
		if four := udp.IP.To4() != nil; !families[four] {
			families[four] = true
			m.addresses = append(m.addresses, udp)
		}
	}
	return m
}

// GetListenAddresses is part of ice.UDPMux.
func (m *mediaMux) GetListenAddresses() []net.Addr { return m.addresses }

// GetConn is part of ice.UDPMux. Pion calls it before it tells the client of the user fragment.
func (m *mediaMux) GetConn(ufrag string, address net.Addr) (net.PacketConn, error) {
	conn, err := m.UDPMuxDefault.GetConn(ufrag, address)
	if err == nil {
		m.socket.Serve(ufrag)
	}
	return conn, err
}

// RemoveConnByUfrag is part of ice.UDPMux. Pion calls it when an ICE agent ends or restarts.
func (m *mediaMux) RemoveConnByUfrag(ufrag string) {
	m.socket.Forget(ufrag)
	m.UDPMuxDefault.RemoveConnByUfrag(ufrag)
}

func last(ip net.IP) int {
	if ip.IsLoopback() {
		return 1
	}
	return 0
}

// offered reports whether a client may be told of an address of this machine, or
// of the advertised ones of its family in its place.
func offered(ip, bound net.IP, cfg Config) bool {
	if ip.IsLoopback() && !cfg.Loopback || ip.IsLinkLocalUnicast() {
		return false
	}
	four := ip.To4() != nil
	if bound.IsUnspecified() && bound.To4() != nil && !four {
		return false // 0.0.0.0 hears no IPv6; [::] hears both.
	}
	return len(cfg.AdvertiseIPs) == 0 || slices.ContainsFunc(cfg.AdvertiseIPs, func(text string) bool {
		advertised, err := netip.ParseAddr(text)
		return err == nil && advertised.Unmap().Is4() == four
	})
}
