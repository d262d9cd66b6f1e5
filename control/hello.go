package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
)

// ErrRefused means that the kernel at the address refused the connection. That alone proves no death.
var ErrRefused = errors.New("connection refused")

var errDialedOnce = errors.New("the connection of a hello is dialed once")

// HelloAt asks who answers at addr, over a new connection: the pooled one may be in back-off. A refused dial wraps
// ErrRefused; other errors prove nothing.
func (p *Pool) HelloAt(ctx context.Context, addr string) (Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.HelloTimeout)
	defer cancel()
	socket, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Hello{}, fmt.Errorf("dial %s: %w", addr, ErrRefused)
	}
	if err != nil {
		return Hello{}, fmt.Errorf("dial %s: %w", addr, err)
	}
	// gRPC may not have taken the socket over.
	defer func() { _ = socket.Close() }()
	hello, err := p.helloOver(ctx, socket, addr)
	if err != nil {
		return Hello{}, fmt.Errorf("ask %s for its boot: %w", addr, err)
	}
	return hello, nil
}

func (p *Pool) helloOver(ctx context.Context, socket net.Conn, addr string) (Hello, error) {
	var taken atomic.Bool
	once := func(context.Context, string) (net.Conn, error) {
		if taken.Swap(true) {
			return nil, errDialedOnce
		}
		return socket, nil
	}
	conn, err := grpc.NewClient(target(addr), append(p.options(), grpc.WithContextDialer(once))...)
	if err != nil {
		return Hello{}, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := NewMediaClient(conn).Watch(ctx, &WatchRequest{Version: Protocol, Capabilities: Capabilities()})
	if err != nil {
		return Hello{}, err
	}
	heartbeat, err := stream.Recv()
	if err != nil {
		return Hello{}, err
	}
	return heartbeat.Value()
}
