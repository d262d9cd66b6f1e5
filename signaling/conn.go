package signaling

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// How far a client may outrun its pace.
const readBytes = 16 << 10

// clientConn is pending until a good token, and read at its pace.
type clientConn struct {
	*connlimit.Conn

	pace *rate.Limiter // in bytes
	due  time.Time     // of the next read
}

// Read waits for earlier reads, so it delays nothing that has arrived.
func (c *clientConn) Read(b []byte) (int, error) {
	if wait := time.Until(c.due); wait > 0 {
		timer := time.NewTimer(wait)
		<-timer.C // half a second at most
	}
	n, err := c.Conn.Read(b[:min(len(b), readBytes)])
	if n > 0 {
		now := time.Now()
		c.due = now.Add(c.pace.ReserveN(now, n).DelayFrom(now))
	}
	return n, err
}

type clientListener struct{ *connlimit.Listener }

func (l *clientListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	waiting, ok := inner.(*connlimit.Conn)
	if !ok {
		return inner, nil
	}
	return &clientConn{
		Conn: waiting, pace: rate.NewLimiter(bytesPerSecond, byteBurst),
	}, nil
}

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if brought, ok := conn.(*broughtConn); ok {
		conn = brought.Raw()
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// connOf is nil for requests that did not come through Run.
func connOf(ctx context.Context) *clientConn {
	conn, _ := ctx.Value(connKey{}).(*clientConn)
	return conn
}
