package signaling

import (
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/holdfast-rtc/holdfast/connlimit"
)

// A balancer says it at once.
const proxyHeaderLimit = 5 * time.Second

// proxied gives a connection that one of the balancers brings the address that its PROXY protocol header names, version 1 or 2
// (haproxy.org, proxy-protocol.txt). One without a header, such as a health check, is the balancer's own. Of anybody else a header is not read as one.
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
