package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/signaling/relay"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// turnFlags are of this node's own relay, and of others that clients are given.
type turnFlags struct {
	TurnListen      string   `placeholder:"HOST:PORT" help:"host:port of this node's TURN server, UDP and TCP; usually :3478. It relays to this cluster's media nodes only."`
	TurnTLSListen   string   `name:"turn-tls-listen" placeholder:"HOST:PORT" help:"host:port of the same over TLS; :443 passes most firewalls. Its certificate is that of --listen unless --turn-tls-cert names another."`
	TurnTLSCert     string   `name:"turn-tls-cert" placeholder:"FILE" help:"The certificate chain of --turn-tls-listen, PEM. It is read again when it changes."`
	TurnTLSKey      string   `name:"turn-tls-key" placeholder:"FILE" help:"Its key, PEM."`
	TurnPublic      string   `placeholder:"HOST" help:"The name or address that clients reach the TURN server at; with TLS it is a name in the certificate. The host of --advertise unless given."`
	TurnAllocations int      `default:"${turn_allocations}" help:"How many allocations this node has at once; a client uses a few, each a socket."`
	ICEServer       []string `name:"ice-server" placeholder:"URL" help:"Other STUN or TURN servers that clients are given (stun:, turn: or turns:)."`
	ICEUsername     string   `name:"ice-username" placeholder:"TEXT" help:"The user name at the TURN servers of --ice-server."`
	ICEPassword     string   `name:"ice-password" placeholder:"TEXT" help:"The password there; better given as HOLDFAST_ICE_PASSWORD."`
	ICESecret       string   `name:"ice-secret" placeholder:"TEXT" help:"Instead of both, the secret shared with them (coturn's static-auth-secret), from which each identity gets a password of its own; better given as HOLDFAST_ICE_SECRET."`
}

// checkTurn returns every fault of the flags. The page's certificates serve the relay, too, unless it has its own.
func (f turnFlags) checkTurn(page tlsFlags) error {
	var found []error
	for _, at := range []struct{ flag, address string }{{"turn-listen", f.TurnListen}, {"turn-tls-listen", f.TurnTLSListen}} {
		if at.address != "" {
			found = append(found, CheckHostPort(at.flag, at.address))
		}
	}
	switch {
	case (f.TurnTLSCert == "") != (f.TurnTLSKey == ""):
		found = append(found, errors.New("--turn-tls-cert: give it and --turn-tls-key, or neither"))
	case f.TurnTLSListen == "" || f.TurnTLSCert != "":
	case !page.secure():
		found = append(found, errors.New("--turn-tls-listen: give --turn-tls-cert and --turn-tls-key, or the page's --tls-cert or --acme-host, too"))
	case len(page.ACMEHost) > 0 && !slices.Contains(page.ACMEHost, f.TurnPublic):
		found = append(found, fmt.Errorf("--turn-public %q: clients reach TURN over TLS by a name that is certified: one of --acme-host", f.TurnPublic))
	}
	if f.TurnAllocations <= 0 {
		found = append(found, fmt.Errorf("--turn-allocations: %d is not a positive number", f.TurnAllocations))
	}
	return errors.Join(append(found, f.checkICE())...)
}

// checkICE refuses what a browser refuses: it then makes no connection at all.
func (f turnFlags) checkICE() error {
	var found []error
	for _, url := range f.ICEServer {
		turn, err := relay.CheckURL(url)
		if err == nil && turn && f.ICESecret == "" && f.ICEUsername == "" && f.ICEPassword == "" {
			err = errors.New("give --ice-secret, or --ice-username and --ice-password: no browser uses a TURN server without them")
		}
		if err != nil {
			found = append(found, fmt.Errorf("--ice-server %q: %w", url, err))
		}
	}
	if f.ICESecret != "" && (f.ICEUsername != "" || f.ICEPassword != "") {
		found = append(found, errors.New("--ice-secret: give either it or --ice-username and --ice-password"))
	}
	if (f.ICEUsername == "") != (f.ICEPassword == "") {
		found = append(found, errors.New("--ice-username: give it and --ice-password, or neither"))
	}
	return errors.Join(found...)
}

// external are the servers of --ice-server. A browser refuses a user name for STUN.
func (f turnFlags) external() (servers relay.Servers) {
	var stun, turn []string
	for _, url := range f.ICEServer {
		if isTURN, _ := relay.CheckURL(url); isTURN {
			turn = append(turn, url)
		} else {
			stun = append(stun, url)
		}
	}
	if len(stun) > 0 {
		servers.Static = append(servers.Static, wire.ICEServer{URLs: stun})
	}
	switch {
	case len(turn) == 0:
	case f.ICESecret != "":
		secret := [][]byte{[]byte(f.ICESecret)}
		servers.Issuers = append(servers.Issuers, &relay.Issuer{URLs: turn, Secrets: func() [][]byte { return secret }, Life: relay.CredentialLife})
	default:
		servers.Static = append(servers.Static, wire.ICEServer{URLs: turn, Username: f.ICEUsername, Credential: f.ICEPassword})
	}
	return servers
}

// turnNode is a relay and its sockets. A nil one does nothing.
type turnNode struct {
	relay *relay.Relay
	at    relay.Listeners
	// certificate is the relay's own. It is nil if the relay has none, or has the page's.
	certificate *certificate
}

// listenTurn is given the TLS of the page's port, or nil.
func (f turnFlags) listenTurn(ctx context.Context, page *tls.Config) (node *turnNode, err error) {
	if f.TurnListen == "" && f.TurnTLSListen == "" {
		return nil, nil
	}
	node = &turnNode{}
	defer func() {
		if err != nil {
			node.close()
			node = nil
		}
	}()
	var listening net.ListenConfig
	if f.TurnListen != "" {
		if node.at.TCP, err = listening.Listen(ctx, "tcp", f.TurnListen); err != nil {
			return node, fmt.Errorf("listen for TURN over TCP (--turn-listen): %w", err)
		}
		host, port, _ := net.SplitHostPort(f.TurnListen)
		if port == "0" {
			_, port, _ = net.SplitHostPort(node.at.TCP.Addr().String())
		}
		if node.at.UDP, err = listening.ListenPacket(ctx, "udp", net.JoinHostPort(host, port)); err != nil {
			return node, fmt.Errorf("listen for TURN over UDP (--turn-listen): %w", err)
		}
	}
	if f.TurnTLSListen != "" {
		if f.TurnTLSCert != "" {
			if node.certificate, err = readCertificate("turn-tls", f.TurnTLSCert, f.TurnTLSKey); err != nil {
				return node, err
			}
			page = node.certificate.config()
		}
		plain, err := listening.Listen(ctx, "tcp", f.TurnTLSListen)
		if err != nil {
			return node, fmt.Errorf("listen for TURN over TLS (--turn-tls-listen): %w", err)
		}
		node.at.TLS = tls.NewListener(plain, page)
	}
	return node, nil
}

// urls are what clients are given: the cheapest way first.
func (t *turnNode) urls(host string) (urls []string) {
	for _, at := range []struct {
		scheme, transport string
		bound             net.Addr
	}{{"turn", "udp", addressOf(t.at.UDP)}, {"turn", "tcp", addrOf(t.at.TCP)}, {"turns", "tcp", addrOf(t.at.TLS)}} {
		if at.bound != nil {
			_, port, _ := net.SplitHostPort(at.bound.String())
			urls = append(urls, at.scheme+":"+net.JoinHostPort(host, port)+"?transport="+at.transport)
		}
	}
	return urls
}

func addressOf(conn net.PacketConn) net.Addr {
	if conn == nil {
		return nil
	}
	return conn.LocalAddr()
}

func addrOf(lis net.Listener) net.Addr {
	if lis == nil {
		return nil
	}
	return lis.Addr()
}

// joinTurn makes the relay, and gives what sessions are told and the relay's counters.
func (n *signalingNode) joinTurn(f turnFlags, advertisedHTTP string, key control.ClusterKey, guard *panics.Guard) (func(session string, ends, now time.Time) ([]wire.ICEServer, time.Duration), func() any, error) {
	servers := f.external()
	if n.turn == nil {
		return servers.For, nil, nil
	}
	host := f.TurnPublic
	if host == "" {
		host, _, _ = net.SplitHostPort(advertisedHTTP)
		if bound := cmp.Or(addrOf(n.turn.at.TCP), addrOf(n.turn.at.TLS)); !unspecified(bound.String()) {
			host, _, _ = net.SplitHostPort(bound.String())
		}
	}
	host = strings.Trim(host, "[]")
	if n.turn.at.TLS != nil && net.ParseIP(host) != nil {
		n.log.Warn("Firefox takes no TURN over TLS from an address: name this node by --turn-public", "host", host)
	}
	config := relay.DefaultConfig()
	config.Address, config.Secrets, config.Media = relayAddress(host, n.turn.at), key.RelaySecrets, relay.NewGossiped(n.cluster)
	config.MaxAllocations, config.Panics = f.TurnAllocations, guard
	var err error
	if n.turn.relay, err = relay.New(config, n.log); err != nil {
		return nil, nil, err
	}
	servers.Issuers = append(servers.Issuers, &relay.Issuer{URLs: n.turn.urls(host), Secrets: key.RelaySecrets, Life: relay.CredentialLife})
	return servers.For, func() any { return n.turn.relay.Counters() }, nil
}

// relayAddress is what stands in candidates. Media nodes answer to where packets come from, so that any of this host's
// does where the public one is a name.
func relayAddress(host string, at relay.Listeners) netip.Addr {
	candidates := []string{host}
	for _, bound := range []net.Addr{addrOf(at.TCP), addrOf(at.TLS)} {
		if bound != nil && !unspecified(bound.String()) {
			own, _, _ := net.SplitHostPort(bound.String())
			candidates = append(candidates, own)
		}
	}
	all, _ := net.InterfaceAddrs()
	for _, each := range all {
		if network, ok := each.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			candidates = append(candidates, network.IP.String())
		}
	}
	for _, text := range append(candidates, "127.0.0.1") {
		if ip, err := netip.ParseAddr(text); err == nil {
			return ip.Unmap().WithZone("")
		}
	}
	return netip.Addr{}
}

func (t *turnNode) tell(addresses map[string]string) {
	if t == nil {
		return
	}
	if at := addrOf(t.at.TCP); at != nil {
		addresses[child.AddressTURN] = at.String()
	}
	if at := addrOf(t.at.TLS); at != nil {
		addresses[child.AddressTURNTLS] = at.String()
	}
}

func (t *turnNode) watch(log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		if t == nil || t.certificate == nil {
			return nil
		}
		return t.certificate.watch(ctx, log)
	}
}

// counters returns nil if the node does not relay.
func (t *turnNode) counters() func() relay.Counters {
	if t == nil {
		return nil
	}
	return t.relay.Counters
}

func (t *turnNode) close() {
	if t != nil {
		t.at.Close()
	}
}
