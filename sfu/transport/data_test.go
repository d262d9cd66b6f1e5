package transport

import (
	"net"
	"testing"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
)

// newDataClient has its data echoed. ended is closed when nobody carries it any more.
func newDataClient(t *testing.T, carry func(net.Conn)) (c *client, server *dtls.Conn, w *wire, ended chan struct{}) {
	t.Helper()
	transport, w := newTransport(t)
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	c, server, shaken := newServer(t, transport, w, "alice", certificate, func(cfg *Config) {
		cfg.Data = func(conn net.Conn) {
			defer close(ended)
			carry(conn)
		}
	})
	c.connect(server, shaken)
	return c, server, w, ended
}

func echo(conn net.Conn) {
	b := make([]byte, receiveBytes)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		if string(b[:n]) == "close" {
			_ = conn.Close()
			return
		}
		_, _ = conn.Write(b[:n])
	}
}

func TestDataGoesBesideTheMedia(t *testing.T) {
	c, server, w, ended := newDataClient(t, echo)
	b := make([]byte, receiveBytes)
	for _, text := range []string{"hello", "again"} {
		if _, err := server.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if n, err := server.Read(b); err != nil || string(b[:n]) != text {
			t.Errorf("%q came back as %q (%v)", text, b[:n], err)
		}
		c.send(7, 1)
		eventually(t, "media is heard", func() bool { return c.got.heard() == 1 })
	}
	w.sized()
	c.conn.Close()
	select {
	case <-ended:
	default:
		t.Error("the data goes on after Close")
	}
	if n, _ := w.sized(); n != 0 {
		t.Errorf("%d datagrams were sent at the end, which the client would take for its own", n)
	}
}

// TestDataThatEndsLeavesTheMedia: DTLS says goodbye when it is closed, and a browser would end its RTCPeerConnection.
func TestDataThatEndsLeavesTheMedia(t *testing.T) {
	c, server, w, ended := newDataClient(t, echo)
	w.sized()
	if _, err := server.Write([]byte("close")); err != nil {
		t.Fatal(err)
	}
	<-ended
	c.send(7, 1)
	eventually(t, "media is heard", func() bool { return c.got.heard() == 1 })
	if n, _ := w.sized(); n != 0 {
		t.Errorf("%d datagrams were sent at the end", n)
	}
}

// TestDataThatBreaksTheNodeLeavesTheMedia: whoever handles the data may panic.
func TestDataThatBreaksTheNodeLeavesTheMedia(t *testing.T) {
	c, server, _, ended := newDataClient(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, receiveBytes))
		panic("data")
	})
	if _, err := server.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	<-ended
	c.send(7, 1)
	eventually(t, "media is heard", func() bool { return c.got.heard() == 1 })
	if state := c.got.state(); state != Connected {
		t.Errorf("the connection is %v", state)
	}
}
