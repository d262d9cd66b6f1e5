package connlimit

import "net"

// Listener counts accepted connections as pending.
type Listener struct {
	net.Listener

	limiter *Limiter
}

// Listen accepts *Conn, and closes dropped ones.
func Listen(inner net.Listener, l *Limiter) *Listener { return &Listener{Listener: inner, limiter: l} }

// Accept is net.Listener's.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: inner}
	conn.Pending = l.limiter.Add(inner.RemoteAddr(), func() { _ = inner.Close() })
	return conn, nil
}

// Conn is pending until Done or Close.
type Conn struct {
	net.Conn
	*Pending
}

// Close is net.Conn's.
func (c *Conn) Close() error {
	c.Done()
	return c.Conn.Close()
}
