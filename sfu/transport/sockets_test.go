package transport

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/stun/v4"
	"github.com/pion/transport/v4/packetio"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// TestAClientIsKnownAtEverySocket: the kernel picks the socket by the client's address, and clients move.
func TestAClientIsKnownAtEverySocket(t *testing.T) {
	const clients, sockets = 12, 4
	transport, w := newReachableTransport(t, sockets)
	for i := range clients {
		c := newClient(t, transport, w, fmt.Sprint(i))
		c.send(7, 1)
		eventually(t, "the node hears the client", func() bool { return c.got.heard() == 1 })
		for len(c.answers) > 0 {
			<-c.answers
		}
		moved, arriving := w.address()
		go c.sort(arriving)
		t.Cleanup(func() { _ = arriving.Close() })
		c.check(moved, c.conn.Credentials(), true)
		c.answerCheck(moved)
		eventually(t, "media goes to the new address", func() bool { return *c.conn.selected.Load() == moved })
		c.from = moved
		c.send(8, 1)
		eventually(t, "the node hears the client at its new address", func() bool { return c.got.heard() == 2 })
		if _, err := c.conn.Writer(&direct{socket: transport.socket}, false).WriteRTP(&rtp.Header{Version: 2, SSRC: 9}, []byte("frame")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.media:
		case <-time.After(patience):
			t.Fatal("nothing comes to the new address")
		}
	}
}

// answerCheck waits for the node's check and answers it from an address.
func (c *client) answerCheck(from egress.Address) {
	c.t.Helper()
	for {
		select {
		case m := <-c.answers:
			if m.Type != stun.BindingRequest {
				continue
			}
			reply, err := stun.Build(stun.NewTransactionIDSetter(m.TransactionID), stun.BindingSuccess, stun.NewShortTermIntegrity(theirPassword), stun.Fingerprint)
			if err != nil {
				c.t.Fatal(err)
			}
			c.wire.in <- datagram{from: from, b: reply.Raw}
			return
		case <-time.After(patience):
			c.t.Fatal("the new address is not checked")
		}
	}
}

// newReachableTransport runs a transport on sockets of the kernel, to which the wire is a way.
func newReachableTransport(t testing.TB, sockets int) (*Transport, *wire) {
	t.Helper()
	bound, err := egress.Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, sockets)
	if err != nil {
		t.Fatal(err)
	}
	for _, socket := range bound {
		_ = socket.SetReadBuffer(4 << 20) // The kernel may give less.
	}
	streams, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	media := egress.New(egress.Options{Streams: streams}, bound...)
	w := &wire{
		t: t, in: make(chan datagram, 1024), closed: make(chan struct{}), clients: map[egress.Address]*packetio.Buffer{},
		at: egress.UDP(bound[0].LocalAddr().(*net.UDPAddr).AddrPort()), sockets: map[egress.Address]*net.UDPConn{}, conns: map[egress.Address]net.Conn{},
	}
	transport := New(media, panics.New(), slog.New(slog.DiscardHandler))
	ended := make(chan error, 2)
	go func() { ended <- transport.Run(t.Context()) }()
	go func() { ended <- w.Receive(0, w.carry, nil) }()
	t.Cleanup(func() {
		close(w.closed)
		for _, socket := range w.sockets {
			socket.Close()
		}
		for _, conn := range w.conns {
			conn.Close()
		}
		if err := media.Close(); err != nil {
			t.Error(err)
		}
		<-ended
		<-ended
	})
	return transport, w
}

// carry takes a datagram from the wire to the transport.
func (w *wire) carry(d []byte, from egress.Address) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// It is lost when the socket is closed.
	if conn := w.conns[from]; conn != nil {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(d))), d...))
		return
	}
	_, _ = w.sockets[from].WriteToUDPAddrPort(d, w.at.AddrPort)
}

// dial gives a client a socket of its own.
func (w *wire) dial(arriving *packetio.Buffer) egress.Address {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		w.t.Fatal(err)
	}
	from := egress.UDP(socket.LocalAddr().(*net.UDPAddr).AddrPort())
	w.sockets[from] = socket
	go func() {
		for b := make([]byte, receiveBytes); ; {
			n, err := socket.Read(b)
			if err != nil {
				return
			}
			_, _ = arriving.Write(b[:n]) // It copies; a client that is closed takes nothing.
		}
	}()
	return from
}
