// Package relay is a TURN server (RFC 8656) for clients that cannot reach media nodes over UDP.
//
// It relays to and from this cluster's media sockets only. Nobody allocates without a session's credential, which may outlive the
// session by Issuer.Life. Allocations, connections and bytes are bounded. Only it knows Pion here.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

const realm = "holdfast"

// Config is a relay's; begin with DefaultConfig.
type Config struct {
	// Address is the address that clients are told. Only its family is relayed.
	Address netip.Addr

	// Secrets has the meaning of Issuer.Secrets.
	Secrets func() [][]byte
	Media   MediaSockets
	Panics  *panics.Guard

	MaxAllocations        int
	MaxSessionAllocations int
	// BytesPerSecond bounds one allocation, each way.
	BytesPerSecond int

	// MaxAge is how long after its credential's end an allocation may be renewed.
	MaxAge time.Duration
	// IdleAfter ends an allocation without packets from media nodes.
	IdleAfter time.Duration

	// MaxPending bounds the connections without an allocation. One more drops the oldest.
	MaxPending           int
	MaxPendingPerAddress int
	PendingLimit         time.Duration
	WriteLimit           time.Duration

	// RequestsPerSecond and RequestBurst bound what is answered over UDP to the addresses of a network that have no
	// allocation: their source may be forged, and an answer is up to 3.4 times as long as its request.
	RequestsPerSecond float64
	RequestBurst      int

	// read is replaced in tests only.
	read func(message []byte) bool
}

// MediaSockets are the media sockets of this cluster.
type MediaSockets interface {
	HasSocket(netip.AddrPort) bool
	HasAddress(netip.Addr) bool
}

// DefaultConfig has the values of the binary.
func DefaultConfig() Config {
	return Config{
		read:           readable,
		MaxAllocations: 4000,
		// A browser allocates for each URL and interface, some six, and anew at every ICE restart. All tabs of an identity are
		// one session, and so are people who share one.
		MaxSessionAllocations: 128,
		// 25 videos take 2 MB/s, a screen 1 MB/s more.
		BytesPerSecond: 6 << 20,
		MaxAge:         12 * time.Hour,
		// Browsers check unused pairs every 25 s.
		IdleAfter:            2 * time.Minute,
		MaxPending:           2048,
		MaxPendingPerAddress: 128,
		PendingLimit:         15 * time.Second,
		WriteLimit:           10 * time.Second,
		// 150 people behind one address who all move at once ask 1800 times: six allocations, two requests each. A victim gets
		// 50 kB/s.
		RequestsPerSecond: 500,
		RequestBurst:      2000,
	}
}

// Validate returns every fault at once.
func (c Config) Validate() error {
	var faults []error
	if !c.Address.IsValid() || c.Address.IsUnspecified() {
		faults = append(faults, fmt.Errorf("the relay's address is %v, want an IP address of this node", c.Address))
	}
	if c.Secrets == nil || c.Media == nil || c.Panics == nil {
		faults = append(faults, errors.New("a relay needs secrets, media sockets and a guard"))
	}
	if c.MaxAllocations <= 0 || c.MaxSessionAllocations <= 0 {
		faults = append(faults, fmt.Errorf("limits of allocations are %d and %d a session, want positive numbers", c.MaxAllocations, c.MaxSessionAllocations))
	}
	if c.RequestsPerSecond <= 0 || c.RequestBurst <= 0 {
		faults = append(faults, fmt.Errorf("%v requests a second are answered without an allocation, %d at once, want positive numbers", c.RequestsPerSecond, c.RequestBurst))
	}
	return errors.Join(faults...)
}

// Counters are totals, except for Allocations.
type Counters struct {
	Allocations        int64  `json:"allocations"`
	Allocated          uint64 `json:"allocated"`
	BytesToMedia       uint64 `json:"bytesToMedia"`
	BytesToClients     uint64 `json:"bytesToClients"`
	RefusedCredentials uint64 `json:"refusedCredentials"`
	// RefusedAllocations counts those that a limit refused.
	RefusedAllocations uint64 `json:"refusedAllocations"`
	RefusedPeers       uint64 `json:"refusedPeers"`
	RefusedFrames      uint64 `json:"refusedFrames"`
	// Strays are packets from sockets that are not this cluster's.
	Strays uint64 `json:"strays"`
	// DroppedPackets are those above the rate.
	DroppedPackets uint64 `json:"droppedPackets"`
	// DroppedConnections had no allocation.
	DroppedConnections uint64 `json:"droppedConnections"`
	// DroppedRequests came over UDP from addresses without an allocation.
	DroppedRequests uint64 `json:"droppedRequests"`
}

type counters struct {
	allocated, toMedia, toClients, credentials, full, peers, frames, strays, packets, requests atomic.Uint64
}

// Relay is one TURN server.
type Relay struct {
	config  Config
	log     *slog.Logger
	logs    *loglimit.Limiter
	count   counters
	pending *connlimit.Limiter
	unknown *connlimit.NetworkLimiter

	mu       sync.Mutex // guards the fields below
	sessions map[string]int
	// NATs share addresses, so one client may have several owners.
	owners   map[client][]string
	sockets  map[*socket]struct{}
	conns    map[client]*conn
	retained map[string]retained
	closed   bool
}

// client is an address over UDP, or a connection, which has a RemoteAddr of its own: addresses recur, and at other listeners.
type client struct {
	udp string
	tcp *net.TCPAddr
}

func clientAt(at net.Addr) client {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return client{tcp: tcp}
	}
	return client{udp: at.String()}
}

// Strangers cause these log lines, so their rate is limited.
const (
	refusalLogsPerSecond = 1
	refusalLogBurst      = 10
)

// New needs Run.
func New(config Config, log *slog.Logger) (*Relay, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("relay configuration: %w", err)
	}
	return &Relay{
		config: config, log: log, logs: loglimit.New(refusalLogsPerSecond, refusalLogBurst),
		pending:  connlimit.New(connlimit.Limits{Total: config.MaxPending, PerAddress: config.MaxPendingPerAddress}),
		unknown:  connlimit.NewNetworkLimiter(config.RequestsPerSecond, config.RequestBurst),
		sessions: make(map[string]int), owners: make(map[client][]string), sockets: make(map[*socket]struct{}), conns: make(map[client]*conn),
		retained: make(map[string]retained),
	}, nil
}

// Listeners are where clients come in. Each may be nil. A TLS listener must shake hands in Read.
type Listeners struct {
	UDP      net.PacketConn
	TCP, TLS net.Listener
}

// Close closes the listeners.
func (l Listeners) Close() {
	if l.UDP != nil {
		_ = l.UDP.Close()
	}
	for _, lis := range []net.Listener{l.TCP, l.TLS} {
		if lis != nil {
			_ = lis.Close()
		}
	}
}

// Run serves until ctx ends, and then closes the listeners and all allocations.
func (r *Relay) Run(ctx context.Context, at Listeners) error {
	defer at.Close()
	config := turn.ServerConfig{
		Realm:        realm,
		AuthHandler:  r.authenticate,
		QuotaHandler: func(user, _ string, _ net.Addr) bool { return r.hasRoom(user) },
		EventHandler: turn.EventHandler{
			OnAuth: func(_, _ net.Addr, _, _, _, _ string, good bool) {
				if !good {
					r.refuse(&r.count.credentials, "its password is wrong")
				}
			},
			OnAllocationCreated: func(at, _ net.Addr, _, user, _ string, _ net.Addr, _ int) { r.admit(at, user) },
			OnAllocationDeleted: func(at, _ net.Addr, _, user, _ string) { r.dismiss(at, user) },
		},
		// Strangers cause Pion's log lines.
		LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled},
		// Otherwise clients with IPv6 would get IPv6 only.
		StrictAddressFamily: r.config.Address.Is4(),
		InboundMTU:          inboundBytes,
	}
	if at.UDP != nil {
		r.buffer(at.UDP, clientsBuffer)
		config.PacketConnConfigs = []turn.PacketConnConfig{{PacketConn: &packets{at.UDP, r}, RelayAddressGenerator: r, PermissionHandler: r.permit}}
	}
	for _, lis := range []net.Listener{at.TCP, at.TLS} {
		if lis != nil {
			config.ListenerConfigs = append(config.ListenerConfigs, turn.ListenerConfig{
				Listener: &listener{lis, r, func() bool { return backoff.Sleep(ctx, acceptPause) }}, RelayAddressGenerator: r, PermissionHandler: r.permit,
			})
		}
	}
	server, err := turn.NewServer(config)
	if err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	<-ctx.Done()
	_ = server.Close()
	r.close()
	return nil
}

// The buffers are large, because all UDP clients share a socket, and video comes in bursts.
const (
	clientsBuffer = 4 << 20
	// mediaBuffer is that of one allocation.
	mediaBuffer = 1 << 20
)

// buffer asks the kernel for a larger buffer, which net.core.rmem_max bounds.
func (r *Relay) buffer(socket net.PacketConn, bytes int) {
	if sized, ok := socket.(interface{ SetReadBuffer(bytes int) error }); ok {
		if err := sized.SetReadBuffer(bytes); err != nil {
			r.log.Warn("a relay's socket keeps its buffer size", "wanted_bytes", bytes, "error", err)
		}
	}
}

// close closes what Pion's Close leaves open: connections, and the allocations of TCP clients.
func (r *Relay) close() {
	r.mu.Lock()
	r.closed = true
	var all []io.Closer
	for c := range r.sockets {
		all = append(all, c)
	}
	for _, c := range r.conns {
		all = append(all, c)
	}
	r.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// authenticate accepts an expired credential for allocations that exist and do not end with it.
func (r *Relay) authenticate(request *turn.RequestAttributes) (user string, key []byte, ok bool) {
	u, ok := parseUsername(request.Username)
	if !ok || request.Realm != realm {
		r.refuse(&r.count.credentials, "its user name is not ours")
		return "", nil, false
	}
	until := u.expires
	if request.Method != stun.MethodAllocate && !u.ends {
		until = until.Add(r.config.MaxAge)
	}
	if time.Now().After(until) {
		r.refuse(&r.count.credentials, "its credential has expired", "session", u.session)
		return "", nil, false
	}
	secret := r.secretOf(u.mark, request.Method)
	if secret == nil {
		r.refuse(&r.count.credentials, "its credential is of another cluster key")
		return "", nil, false
	}
	if request.Method != stun.MethodAllocate && !r.owns(request.SrcAddr, u.session) {
		r.refuse(&r.count.credentials, "the allocation is another session's", "session", u.session)
		return "", nil, false
	}
	return u.user(), turn.GenerateAuthKey(request.Username, realm, password(secret, request.Username)), true
}

// permit sees only the address of a peer. The socket checks the port.
func (r *Relay) permit(client net.Addr, peer net.IP) bool {
	ip, ok := netip.AddrFromSlice(peer)
	if ok && r.config.Media.HasAddress(ip.Unmap()) {
		return true
	}
	r.refuse(&r.count.peers, "no media node is there", "client", client.String(), "peer", peer.String())
	return false
}

func (r *Relay) refuse(counter *atomic.Uint64, why string, about ...any) {
	counter.Add(1)
	if unlogged, ok := r.logs.Next(); ok {
		r.log.Info("relay refused a client", append(about, "why", why, "unlogged", unlogged)...)
	}
}

// Counters returns the figures for operators.
func (r *Relay) Counters() Counters {
	r.mu.Lock()
	now := len(r.sockets)
	r.mu.Unlock()
	_, dropped := r.pending.Count()
	return Counters{
		Allocations: int64(now), Allocated: r.count.allocated.Load(), BytesToMedia: r.count.toMedia.Load(), BytesToClients: r.count.toClients.Load(),
		RefusedCredentials: r.count.credentials.Load(), RefusedAllocations: r.count.full.Load(), RefusedPeers: r.count.peers.Load(),
		RefusedFrames: r.count.frames.Load(), Strays: r.count.strays.Load(), DroppedPackets: r.count.packets.Load(), DroppedConnections: dropped,
		DroppedRequests: r.count.requests.Load(),
	}
}
