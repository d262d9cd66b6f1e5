package transport

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/pion/transport/v4/packetio"
)

// pipe carries the packets of DTLS to the address that the client has at that moment.
type pipe struct {
	*packetio.Buffer

	conn  *Conn
	muted atomic.Bool
}

func (p *pipe) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, p.remote(), err
}

// WriteTo ignores the address: the client may have moved.
func (p *pipe) WriteTo(b []byte, _ net.Addr) (int, error) {
	to := p.conn.selected.Load()
	if to == nil || p.muted.Load() {
		return len(b), nil
	}
	return p.conn.transport.socket.Write(b, *to)
}

func (p *pipe) mute() { p.muted.Store(true) }

func (p *pipe) remote() net.Addr {
	if to := p.conn.selected.Load(); to != nil {
		return net.UDPAddrFromAddrPort(to.AddrPort)
	}
	return &net.UDPAddr{}
}

func (p *pipe) LocalAddr() net.Addr { return &net.UDPAddr{} }

func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
