package signaling

import (
	"context"
	"net"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/lobby"
)

// readBytes bounds one read, and with it how far a client can outrun its pace.
const readBytes = 16 << 10

// clientConn is one client's TCP connection. It waits in the lobby until the client
// has shown a good token, and it is read no faster than the pace: what
// a client sends (frames of no bytes, pings, fragments without end) costs it as much
// time as it costs us, whether or not it ever becomes a message.
type clientConn struct {
	*lobby.Conn

	pace *rate.Limiter // in bytes
	due  time.Time     // of the next read; only the reader uses it
}

// Read is part of net.Conn. It waits for what was read before, not for what it
// returns, so nothing is held back that has arrived.
func (c *clientConn) Read(b []byte) (int, error) {
	if wait := time.Until(c.due); wait > 0 {
		timer := time.NewTimer(wait)
		<-timer.C // At most readBytes at the pace, half a second.
	}
	n, err := c.Conn.Read(b[:min(len(b), readBytes)])
	if n > 0 {
		now := time.Now()
		c.due = now.Add(c.pace.ReserveN(now, n).DelayFrom(now))
	}
	return n, err
}

// clientListener makes connections of clients.
type clientListener struct {
	*lobby.Listener

	config *Config
}

// Accept is part of net.Listener.
func (l *clientListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	waiting, ok := inner.(*lobby.Conn)
	if !ok {
		return inner, nil // It always is one.
	}
	return &clientConn{
		Conn: waiting, pace: rate.NewLimiter(rate.Limit(l.config.BytesPerSecond), max(l.config.ByteBurst, readBytes)),
	}, nil
}

type connKey struct{}

// withConn puts the connection into the context of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// connOf is the connection of a request, nil when it did not come through Run.
func connOf(ctx context.Context) *clientConn {
	conn, _ := ctx.Value(connKey{}).(*clientConn)
	return conn
}
