package lobby

import "net"

// Listener puts every connection that it accepts into a lobby.
type Listener struct {
	net.Listener

	lobby *Lobby
}

// Listen wraps a listener. Its connections are of type *Conn; one that is sent away is closed.
func Listen(inner net.Listener, l *Lobby) *Listener { return &Listener{Listener: inner, lobby: l} }

// Accept is part of net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: inner}
	conn.Guest = l.lobby.Enter(inner.RemoteAddr(), func() { _ = inner.Close() })
	return conn, nil
}

// Conn is a connection that waits in a lobby until Leave is called or it is closed.
type Conn struct {
	net.Conn
	*Guest
}

// Close is part of net.Conn.
func (c *Conn) Close() error {
	c.Leave()
	return c.Conn.Close()
}
