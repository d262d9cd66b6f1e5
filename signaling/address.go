package signaling

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-rtc/holdfast/lobby"
)

// addressOf is the network that a request counts for: that of the TCP connection, or, if that is a trusted
// proxy's, the last one in X-Forwarded-For that is none. What stands before it was said by
// somebody whom nobody trusts. The zero Prefix counts for nobody: a proxy that does not say
// whom it brings, and loopback, where only a proxy of this machine can be.
func addressOf(r *http.Request, proxies []netip.Prefix) netip.Prefix {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip := peer.Addr()
	if lobby.Within(proxies, ip) {
		ip = forwardedFor(strings.Join(r.Header.Values("X-Forwarded-For"), ","), proxies)
	}
	if !ip.IsValid() || ip.Unmap().IsLoopback() {
		return netip.Prefix{}
	}
	return lobby.Network(ip)
}

// forwardedFor is the last address of an X-Forwarded-For that is no proxy's; the zero Addr if there is none. Some
// proxies write the port as well.
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
		if !lobby.Within(proxies, ip) {
			return ip
		}
	}
	return netip.Addr{}
}
