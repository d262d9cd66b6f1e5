package signaling

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// addressOf returns the network whose quota a request counts for: behind a trusted proxy the last untrusted one in
// X-Forwarded-For. Loopback and proxies that name nobody have no quota (zero).
func addressOf(r *http.Request, proxies []netip.Prefix) netip.Prefix {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip := peer.Addr()
	if connlimit.Within(proxies, ip) {
		ip = forwardedFor(strings.Join(r.Header.Values("X-Forwarded-For"), ","), proxies)
	}
	if !ip.IsValid() || ip.Unmap().IsLoopback() {
		return netip.Prefix{}
	}
	return connlimit.Network(ip)
}

// Some proxies add the port.
func forwardedFor(header string, proxies []netip.Prefix) netip.Addr {
	for header != "" {
		cut := strings.LastIndexByte(header, ',')
		last := strings.TrimSpace(header[cut+1:])
		header = header[:max(cut, 0)]
		ip, err := netip.ParseAddr(strings.Trim(last, "[]"))
		if err != nil {
			withPort, err := netip.ParseAddrPort(last)
			if err != nil {
				return netip.Addr{}
			}
			ip = withPort.Addr()
		}
		if !connlimit.Within(proxies, ip) {
			return ip
		}
	}
	return netip.Addr{}
}
