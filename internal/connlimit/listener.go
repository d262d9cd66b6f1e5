package connlimit

import "net"

// Listener counts the connections that it accepts as pending.
type Listener struct {
	net.Listener

	limiter *Limiter
}

// Listen returns a Listener that accepts *Conn and closes the ones that are dropped.
func Listen(inner net.Listener, l *Limiter) *Listener { return &Listener{Listener: inner, limiter: l} }

// Accept is the Accept of net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: inner}
	conn.Pending = l.limiter.Add(inner.RemoteAddr(), func() { _ = inner.Close() })
	return conn, nil
}

// Conn is pending until Done or Close is called.
type Conn struct {
	net.Conn
	*Pending
}

// Close is the Close of net.Conn.
func (c *Conn) Close() error {
	c.Done()
	return c.Conn.Close()
}
