package sfu

import (
	"net"
	"net/netip"
	"slices"

	"github.com/pion/ice/v4"
)

// mediaMux is Pion's mux over the media socket, with a list of addresses that is
// made once: Pion would ask the kernel for every interface at every connection,
// and offer addresses of a family that the socket is not bound to. Addresses that
// the machine gets later are known after a restart.
type mediaMux struct {
	*ice.UDPMuxDefault

	addresses []net.Addr
}

func newMediaMux(mux *ice.UDPMuxDefault, cfg Config) *mediaMux {
	bound, _ := mux.LocalAddr().(*net.UDPAddr)
	m := &mediaMux{UDPMuxDefault: mux}
	for _, address := range mux.GetListenAddresses() {
		if udp, ok := address.(*net.UDPAddr); ok && bound != nil && usable(udp.IP, bound.IP, cfg) {
			m.addresses = append(m.addresses, address)
		}
	}
	return m
}

// GetListenAddresses is part of ice.UDPMux.
func (m *mediaMux) GetListenAddresses() []net.Addr { return m.addresses }

// usable reports whether a client may be told of an address of this machine, or
// of the advertised ones of its family in its place.
func usable(ip, bound net.IP, cfg Config) bool {
	if ip.IsLoopback() && !cfg.Loopback {
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
