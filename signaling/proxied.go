package signaling

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// Balancers send it at once.
const proxyHeaderLimit = 5 * time.Second

// proxied takes addresses from the PROXY protocol header (haproxy.org, proxy-protocol.txt, version 1 or 2) of balancers only.
// Without one, as in health checks, the balancer itself is the client. Proxies have no limit of their own.
func proxied(lis net.Listener, balancers, proxies []netip.Prefix) net.Listener {
	if len(balancers) == 0 {
		return lis
	}
	policy := func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if peer, err := netip.ParseAddrPort(o.Upstream.String()); err == nil && connlimit.Within(balancers, peer.Addr()) {
			return proxyproto.USE, nil
		}
		return proxyproto.SKIP, nil
	}
	return &broughtListener{proxyproto.Listener{Listener: lis, ConnPolicy: policy, ReadHeaderTimeout: proxyHeaderLimit}, proxies}
}

type broughtListener struct {
	proxyproto.Listener

	proxies []netip.Prefix
}

func (l *broughtListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if brought, ok := conn.(*proxyproto.Conn); ok && err == nil {
		return &broughtConn{Conn: brought, proxies: l.proxies}, nil
	}
	return conn, err
}

// broughtConn counts for whom the header names, also before there is a WebSocket.
type broughtConn struct {
	*proxyproto.Conn

	proxies []netip.Prefix
	counted sync.Once
}

func (c *broughtConn) Read(b []byte) (int, error) {
	c.counted.Do(c.count)
	return c.Conn.Read(b)
}

// count reads the header.
func (c *broughtConn) count() {
	client, ok := c.Raw().(*clientConn)
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if ok && err == nil && !connlimit.Within(c.proxies, at.Addr()) {
		client.CountFor(connlimit.Network(at.Addr()))
	}
}
