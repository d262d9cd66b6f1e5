package relay

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// nat gives all clients of a listener one address: a port serves several destinations at once.
type nat struct{ net.Listener }

type translated struct {
	net.Conn

	client *net.TCPAddr
}

func (l nat) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &translated{conn, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000}}, err
}

func (c *translated) RemoteAddr() net.Addr { return c.client }

func TestTwoConnectionsFromOneAddress(t *testing.T) {
	s := newStage(t, nil)
	one, other := tcp(t), tcp(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx, Listeners{TCP: nat{one}, TLS: nat{other}}) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	given := (&Issuer{Secrets: secrets, Life: time.Hour}).Server("p-ada", time.Time{}, time.Now())
	allocates := func(at net.Listener) *hand {
		s.tcp = at.Addr().String()
		h := s.hand("tcp")
		if !h.asks(given, stun.MethodAllocate, overUDP) {
			t.Fatal("no allocation")
		}
		return h
	}
	first, second := allocates(one), allocates(other)
	first.send(stun.MethodRefresh, append([]stun.Setter{ends}, proof(given, first.nonce)...)...)
	s.until("the allocation has ended", func(c Counters) bool { return c.Allocations < 2 })
	_ = first.conn.SetReadDeadline(time.Now().Add(patience))
	var err error
	for err == nil {
		_, err = first.conn.Read(make([]byte, 2000))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection whose allocation ended goes on")
	}
	if !second.asks(given, stun.MethodRefresh) {
		t.Error("the other connection's allocation is not renewed")
	}
}
