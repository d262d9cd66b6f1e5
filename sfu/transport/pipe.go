package transport

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/transport/v4/packetio"
)

// pipe is the net.PacketConn of one handshake: the reader of the socket writes into its buffer, and what DTLS sends goes to where
// the client is now.
type pipe struct {
	*packetio.Buffer // Read, Close and the deadline of reads

	conn  *Conn
	muted atomic.Bool

	mu    sync.Mutex // guards the fields below
	hello []byte     // our first flight, until something comes back
	said  time.Time  // when it was sent last
	times int        // that it was repeated
	heard bool
}

// repeatHelloAfter is how long a ClientHello is not sent again, maxHellos how often it is.
const (
	repeatHelloAfter = 10 * time.Millisecond
	maxHellos        = 10
)

// repeatHello sends the first flight again at another check of the client, unless it has been answered. A client that was not
// ready for it (many are not before they have nominated a pair) would wait for the flight's interval otherwise.
func (p *pipe) repeatHello(now time.Time) {
	p.mu.Lock()
	again := !p.heard && p.hello != nil && now.Sub(p.said) >= repeatHelloAfter && p.times < maxHellos
	if again {
		p.times++
	}
	hello := p.hello
	p.mu.Unlock()
	if again {
		_, _ = p.WriteTo(hello, nil) // Like a lost packet.
	}
}

// arrived takes in a record of the client.
func (p *pipe) arrived(b []byte) {
	p.mu.Lock()
	p.heard, p.hello = true, nil
	p.mu.Unlock()
	_, _ = p.Write(b) // It copies. What does not fit is lost like a packet.
}

// ReadFrom is part of net.PacketConn.
func (p *pipe) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, p.remote(), err
}

// WriteTo is part of net.PacketConn. The address is not looked at: a client may have moved since.
func (p *pipe) WriteTo(b []byte, _ net.Addr) (int, error) {
	to := p.conn.selected.Load()
	if to == nil || p.muted.Load() {
		return len(b), nil
	}
	p.mu.Lock()
	if !p.heard {
		p.hello, p.said = bytes.Clone(b), time.Now()
	}
	p.mu.Unlock()
	return p.conn.transport.socket.WriteToAddrPort(b, *to)
}

// mute has everything that is written from now on dropped.
func (p *pipe) mute() { p.muted.Store(true) }

func (p *pipe) remote() net.Addr {
	if to := p.conn.selected.Load(); to != nil {
		return net.UDPAddrFromAddrPort(*to)
	}
	return &net.UDPAddr{}
}

// LocalAddr is part of net.PacketConn.
func (p *pipe) LocalAddr() net.Addr { return &net.UDPAddr{} }

// SetDeadline is SetReadDeadline: writes do not wait.
func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
