package sfu

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
)

// candidates returns one address of each family: with more, answers might take another path than the client chose.
func candidates(bound *net.UDPAddr, cfg Config) ([]netip.AddrPort, error) {
	port := uint16(bound.Port)
	usable := []netip.Addr{bound.AddrPort().Addr().Unmap()}
	if bound.IP.IsUnspecified() {
		usable = nil
		all, err := net.InterfaceAddrs()
		if err != nil {
			return nil, err
		}
		for _, address := range all {
			if prefix, ok := address.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(prefix.IP); ok {
					usable = append(usable, ip.Unmap())
				}
			}
		}
	}
	// A socket on 0.0.0.0 hears no IPv6; one on [::] hears both.
	usable = slices.DeleteFunc(usable, func(ip netip.Addr) bool {
		return ip.IsLoopback() && !cfg.Loopback || ip.IsLinkLocalUnicast() ||
			bound.IP.IsUnspecified() && bound.IP.To4() != nil && !ip.Is4()
	})
	if len(cfg.AdvertiseIPs) > 0 {
		return advertised(usable, cfg.AdvertiseIPs, port), nil
	}
	// Loopback addresses come last, because only this machine reaches them.
	slices.SortStableFunc(usable, func(a, b netip.Addr) int { return cmp.Compare(last(a), last(b)) })
	var told []netip.AddrPort
	for _, ip := range usable {
		if !slices.ContainsFunc(told, func(t netip.AddrPort) bool { return t.Addr().Is4() == ip.Is4() }) {
			told = append(told, netip.AddrPortFrom(ip, port))
		}
	}
	return told, nil
}

func last(ip netip.Addr) int {
	if ip.IsLoopback() {
		return 1
	}
	return 0
}

// advertised are the addresses outside a NAT, of the families that the socket hears.
func advertised(heard []netip.Addr, texts []string, port uint16) []netip.AddrPort {
	var told []netip.AddrPort
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err == nil && slices.ContainsFunc(heard, func(h netip.Addr) bool { return h.Is4() == ip.Unmap().Is4() }) {
			told = append(told, netip.AddrPortFrom(ip.Unmap(), port))
		}
	}
	return told
}
