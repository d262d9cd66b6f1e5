package transport

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/transport/v4/packetio"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// dialTCP gives a client a connection of its own. Where it came from stands for it on the wire.
func (w *wire) dialTCP(arriving *packetio.Buffer) egress.Address {
	conn, err := net.Dial("tcp4", w.tcp)
	if err != nil {
		w.t.Fatal(err)
	}
	from := egress.UDP(conn.LocalAddr().(*net.TCPAddr).AddrPort())
	w.conns[from] = conn
	go func() {
		for b := make([]byte, receiveBytes); ; {
			if _, err := io.ReadFull(conn, b[:2]); err != nil {
				return
			}
			length := binary.BigEndian.Uint16(b)
			if _, err := io.ReadFull(conn, b[:length]); err != nil {
				return
			}
			_, _ = arriving.Write(b[:length]) // It copies; a client that is closed takes nothing.
		}
	}()
	return from
}

// newTransportOverTCP runs a transport on sockets of the kernel, to which clients come by TCP.
func newTransportOverTCP(t testing.TB) (*Transport, *wire) {
	t.Helper()
	transport, w := newReachableTransport(t, 1)
	w.tcp = transport.socket.(*egress.Conn).StreamAddr().String()
	return transport, w
}

// TestMediaGoesBothWaysByTCP, and by another connection when one has ended.
func TestMediaGoesBothWaysByTCP(t *testing.T) {
	transport, w := newTransportOverTCP(t)
	c := newClient(t, transport, w, "alice")
	c.send(7, 1)
	eventually(t, "the node hears the client", func() bool { return c.got.heard() == 1 })
	comes := func() {
		t.Helper()
		if _, err := c.conn.Writer(&direct{socket: transport.socket}, true).WriteRTP(&rtp.Header{Version: 2, SSRC: 9}, []byte("frame")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.media:
		case <-time.After(patience):
			t.Fatal("nothing comes to the client")
		}
	}
	comes()
	if used := c.conn.selected.Load(); used.Stream == nil || transport.at(*used) != c.conn {
		t.Errorf("media goes to %v, want a TCP connection", used)
	}
	w.conns[c.from].Close()
	eventually(t, "the connection that has ended is forgotten", func() bool { return c.conn.selected.Load() == nil })
	if n, err := c.conn.Writer(&direct{socket: transport.socket}, true).WriteRTP(&rtp.Header{Version: 2, SSRC: 9}, []byte("frame")); n != 0 || err != nil {
		t.Errorf("a write without an address gives %d, %v", n, err)
	}
	again, arriving := w.address()
	go c.sort(arriving)
	defer arriving.Close()
	for len(c.answers) > 0 {
		<-c.answers
	}
	c.check(again, c.conn.Credentials(), true)
	c.answerCheck(again)
	eventually(t, "media goes to the new connection", func() bool { return c.conn.selected.Load() != nil })
	comes()
}

// TestWhatIsForgottenIsClosed: TCP connections beyond the bound, and those of a connection that is closed.
func TestWhatIsForgottenIsClosed(t *testing.T) {
	transport, w := newTransportOverTCP(t)
	c := newClient(t, transport, w, "alice")
	for range 3 * maxAddresses {
		more, arriving := w.address()
		go c.sort(arriving)
		t.Cleanup(func() { _ = arriving.Close() })
		for len(c.answers) > 0 {
			<-c.answers
		}
		c.check(more, c.conn.Credentials(), false)
		select {
		case <-c.answers:
		case <-time.After(patience):
			t.Fatal("a check by TCP is not answered")
		}
	}
	transport.mu.RLock()
	kept := len(transport.byAddress)
	transport.mu.RUnlock()
	if kept != maxAddresses || transport.at(*c.conn.selected.Load()) != c.conn {
		t.Errorf("%d TCP connections are kept, want %d, and the one in use", kept, maxAddresses)
	}
	eventually(t, "the others are closed", func() bool { return transport.socket.(*egress.Conn).Streams() == maxAddresses })
	c.conn.Close()
	eventually(t, "all are closed", func() bool { return transport.socket.(*egress.Conn).Streams() == 0 })
}
