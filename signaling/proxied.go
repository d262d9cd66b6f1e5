package signaling

import (
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/holdfast-rtc/holdfast/connlimit"
)

// Balancers send it at once.
const proxyHeaderLimit = 5 * time.Second

// proxied takes addresses from the PROXY protocol header (haproxy.org, proxy-protocol.txt, version 1 or 2) of balancers only.
// Without one, as in health checks, the balancer itself is the client.
func proxied(lis net.Listener, balancers []netip.Prefix) net.Listener {
	if len(balancers) == 0 {
		return lis
	}
	policy := func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if peer, err := netip.ParseAddrPort(o.Upstream.String()); err == nil && connlimit.Within(balancers, peer.Addr()) {
			return proxyproto.USE, nil
		}
		return proxyproto.SKIP, nil
	}
	return &proxyproto.Listener{Listener: lis, ConnPolicy: policy, ReadHeaderTimeout: proxyHeaderLimit}
}
