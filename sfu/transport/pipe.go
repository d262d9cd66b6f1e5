package transport

import (
	"net"
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
	return p.conn.transport.socket.Write(b, *to)
}

// mute has everything that is written from now on dropped.
func (p *pipe) mute() { p.muted.Store(true) }

func (p *pipe) remote() net.Addr {
	if to := p.conn.selected.Load(); to != nil {
		return net.UDPAddrFromAddrPort(to.AddrPort)
	}
	return &net.UDPAddr{}
}

// LocalAddr is part of net.PacketConn.
func (p *pipe) LocalAddr() net.Addr { return &net.UDPAddr{} }

// SetDeadline is SetReadDeadline: writes do not wait.
func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
