package control

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// ErrPoolClosed and ErrPoolFull are the refusals of Pool.Client.
var (
	ErrPoolClosed = errors.New("control pool is closed")
	ErrPoolFull   = errors.New("control pool is full")
)

// Config tunes a Pool. The zero value is not usable; begin with DefaultConfig.
type Config struct {
	MaxConnections int           // addresses held at once; one more is refused with ErrPoolFull
	BackoffBase    time.Duration // pause after the first broken connection
	BackoffMax     time.Duration // longest pause; it also bounds one attempt to connect
	HelloTimeout   time.Duration // bounds BootAt: dial, handshake and first beat together
}

// DefaultConfig gives the values that a re-homing within a few hundred
// milliseconds needs.
func DefaultConfig() Config {
	return Config{
		// Every SFU of a cluster once; gossip gets slow long before 4096 nodes.
		MaxConnections: 4096,
		// gRPC's own values (1 s to 120 s, 20 s for one attempt) are made for servers
		// far away. A node that restarts is back in tens of milliseconds, and one
		// dial per second and edge to a dead address costs nothing.
		BackoffBase: 50 * time.Millisecond,
		BackoffMax:  time.Second,
		// A handshake on a busy 2-core machine takes some 10 ms; a frozen
		// process accepts (its kernel does) and stays silent, so this is what it costs.
		HelloTimeout: time.Second,
	}
}

const (
	// keepaliveTime is gRPC's least value for a client. It only finds connections
	// that nobody uses: where a Watch stream runs, missing beats tell sooner.
	keepaliveTime = 10 * time.Second
	// keepaliveTimeout is long enough that a process that got no CPU for some
	// seconds keeps its connection, and with it its peers' streams.
	keepaliveTimeout = 5 * time.Second
	// replyBytes bounds one message of an SFU: a RoomsReply of 1000 rooms of 100 peers has about 6 MB.
	replyBytes = 16 << 20
)

// Pool holds one gRPC connection for each SFU control address. It is safe for
// concurrent use. It owns no goroutine of its own; gRPC's end with Forget and
// Close.
type Pool struct {
	key    ClusterKey
	config Config

	mu          sync.Mutex // guards the fields below
	closed      bool
	connections map[string]*grpc.ClientConn
}

// NewPool makes an empty pool of connections that are authenticated with key.
func NewPool(key ClusterKey, config Config) *Pool {
	return &Pool{key: key, config: config, connections: make(map[string]*grpc.ClientConn)}
}

// Client returns a client that speaks over the one connection to addr
// (host:port). It dials when it is first used, and again after it broke; while it
// cannot connect, calls fail at once with codes.Unavailable.
func (p *Pool) Client(addr string) (MediaClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrPoolClosed
	}
	if conn, ok := p.connections[addr]; ok {
		return NewMediaClient(conn), nil
	}
	if len(p.connections) >= p.config.MaxConnections {
		return nil, fmt.Errorf("connect to %s: %w (%d addresses)", addr, ErrPoolFull, p.config.MaxConnections)
	}
	conn, err := grpc.NewClient(target(addr), p.options()...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	p.connections[addr] = conn
	return NewMediaClient(conn), nil
}

// Hurry makes a connection to addr that waits in back-off dial now. Whoever has
// just seen the node answer calls it.
func (p *Pool) Hurry(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	p.mu.Unlock()
	if conn != nil {
		conn.ResetConnectBackoff()
	}
}

// Forget closes the connection to addr and ends the calls on it. Call it when
// the node is known to be gone and no live node uses the address.
func (p *Pool) Forget(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	delete(p.connections, addr)
	p.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // The only error is that it was closed before.
	}
}

// Close closes every connection; the pool hands out no more.
func (p *Pool) Close() {
	p.mu.Lock()
	all := p.connections
	p.connections, p.closed = nil, true
	p.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close() // The only error is that it was closed before.
	}
}

// target skips gRPC's DNS resolver, which looks a name up again at most every 30
// s: the dialer resolves at each dial.
func target(addr string) string { return "passthrough:///" + addr }

// options are those of every connection, pooled or not.
func (p *Pool) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(p.key.ClientCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: p.config.BackoffBase, MaxDelay: p.config.BackoffMax, Multiplier: 1.6, Jitter: 0.2,
			},
			MinConnectTimeout: p.config.BackoffMax,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(replyBytes), grpc.MaxCallSendMsgSize(requestBytes)),
		grpc.WithNoProxy(), // A proxy for the web must not see control traffic.
		grpc.WithDisableServiceConfig(),
	}
}
