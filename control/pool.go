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

var (
	errPoolClosed = errors.New("control pool is closed")
	errPoolFull   = errors.New("control pool is full")
)

// Config tunes a Pool.
type Config struct {
	MaxConnections int
	BackoffBase    time.Duration
	// BackoffMax also bounds one attempt.
	BackoffMax   time.Duration
	HelloTimeout time.Duration
}

// DefaultConfig suits a fast re-homing.
func DefaultConfig() Config {
	return Config{
		// Gossip becomes slow before a cluster has 4,096 nodes.
		MaxConnections: 4096,
		// gRPC's own 1 s to 120 s are meant for far servers.
		BackoffBase:  50 * time.Millisecond,
		BackoffMax:   time.Second,
		HelloTimeout: time.Second,
	}
}

const (
	// gRPC allows no shorter time.
	keepaliveTime = 10 * time.Second
	// A process may be without CPU time for seconds.
	keepaliveTimeout = 5 * time.Second
	// replyBytes is enough for 1,000 rooms of 100 peers.
	replyBytes = 16 << 20
)

// Pool keeps one connection for each control address. It is safe for concurrent use.
type Pool struct {
	key    ClusterKey
	config Config

	mu          sync.Mutex
	closed      bool
	connections map[string]*grpc.ClientConn
}

// NewPool returns a Pool that has dialed nothing.
func NewPool(key ClusterKey, config Config) *Pool {
	return &Pool{key: key, config: config, connections: make(map[string]*grpc.ClientConn)}
}

// Client returns a client that uses the one connection to addr (host:port). While that connection is broken, calls
// fail with codes.Unavailable.
func (p *Pool) Client(addr string) (MediaClient, error) {
	conn, err := p.connection(addr)
	if err != nil {
		return nil, err
	}
	return NewMediaClient(conn), nil
}

// Messages is like Client, for a signaling node.
func (p *Pool) Messages(addr string) (MessagesClient, error) {
	conn, err := p.connection(addr)
	if err != nil {
		return nil, err
	}
	return NewMessagesClient(conn), nil
}

// Links is like Client, for another media node.
func (p *Pool) Links(addr string) (LinksClient, error) {
	conn, err := p.connection(addr)
	if err != nil {
		return nil, err
	}
	return NewLinksClient(conn), nil
}

// Moves is like Client, for a signaling node.
func (p *Pool) Moves(addr string) (MovesClient, error) {
	conn, err := p.connection(addr)
	if err != nil {
		return nil, err
	}
	return NewMovesClient(conn), nil
}

// Standby is like Client, for a media node.
func (p *Pool) Standby(addr string) (StandbyClient, error) {
	conn, err := p.connection(addr)
	if err != nil {
		return nil, err
	}
	return NewStandbyClient(conn), nil
}

func (p *Pool) connection(addr string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	if conn, ok := p.connections[addr]; ok {
		return conn, nil
	}
	if len(p.connections) >= p.config.MaxConnections {
		return nil, fmt.Errorf("connect to %s: %w (%d addresses)", addr, errPoolFull, p.config.MaxConnections)
	}
	conn, err := grpc.NewClient(target(addr), p.options()...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	p.connections[addr] = conn
	return conn, nil
}

// Hurry ends the back-off of a broken connection.
func (p *Pool) Hurry(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	p.mu.Unlock()
	if conn != nil {
		conn.ResetConnectBackoff()
	}
}

// Forget ends the connection to addr and its calls.
func (p *Pool) Forget(addr string) {
	p.mu.Lock()
	conn := p.connections[addr]
	delete(p.connections, addr)
	p.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// Close ends all connections, for good.
func (p *Pool) Close() {
	p.mu.Lock()
	all := p.connections
	p.connections, p.closed = nil, true
	p.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}

// target avoids gRPC's DNS resolver, which caches answers for 30 s; the dialer does not.
func target(addr string) string { return "passthrough:///" + addr }

func (p *Pool) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(p.key.clientCredentials()),
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
		grpc.WithUnaryInterceptor(traceUnary), grpc.WithStreamInterceptor(traceStream),
		// Control traffic does not go through a web proxy.
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	}
}
