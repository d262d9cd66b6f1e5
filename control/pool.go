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

// Refusals of Pool.Client.
var (
	ErrPoolClosed = errors.New("control pool is closed")
	ErrPoolFull   = errors.New("control pool is full")
)

// Config tunes a Pool.
type Config struct {
	MaxConnections int           // one more is refused with ErrPoolFull
	BackoffBase    time.Duration // after the first broken connection
	BackoffMax     time.Duration // it also bounds one attempt to connect
	HelloTimeout   time.Duration // bounds BootAt
}

// DefaultConfig is for a re-homing within a few hundred milliseconds.
func DefaultConfig() Config {
	return Config{
		// Every media node once; gossip gets slow long before 4096 nodes.
		MaxConnections: 4096,
		// gRPC's own values (1 s to 120 s) are for servers far away. A dial a second to a dead address costs nothing.
		BackoffBase: 50 * time.Millisecond,
		BackoffMax:  time.Second,
		// A handshake on a busy machine takes 10 ms; a frozen process accepts and stays silent.
		HelloTimeout: time.Second,
	}
}

const (
	// keepaliveTime is gRPC's least. It finds connections that nobody uses; on a Watch stream missing heartbeats tell
	// sooner.
	keepaliveTime = 10 * time.Second
	// keepaliveTimeout lets a process that got no CPU for some seconds keep its connection.
	keepaliveTimeout = 5 * time.Second
	// replyBytes is more than a RoomsReply of 1000 rooms of 100 peers.
	replyBytes = 16 << 20
)

// Pool holds one gRPC connection for each control address. It is safe for concurrent use, and owns no goroutine; gRPC's
// end with Forget and Close.
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

// Client speaks over the one connection to addr (host:port). It dials when it is first used, and again after it broke;
// meanwhile calls fail at once with codes.Unavailable.
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

// Hurry ends a back-off: the caller has just seen the node answer.
func (p *Pool) Hurry(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	p.mu.Unlock()
	if conn != nil {
		conn.ResetConnectBackoff()
	}
}

// Forget closes the connection to addr and ends the calls on it. No live node may use the address.
func (p *Pool) Forget(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	delete(p.connections, addr)
	p.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // closed before
	}
}

// Close closes every connection; the pool hands out no more.
func (p *Pool) Close() {
	p.mu.Lock()
	all := p.connections
	p.connections, p.closed = nil, true
	p.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close() // closed before
	}
}

// target skips gRPC's DNS resolver, which caches for 30 s: the dialer resolves at each dial.
func target(addr string) string { return "passthrough:///" + addr }

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
