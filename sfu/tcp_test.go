package sfu

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
)

// tcpClient is a media client that reaches the node by TCP only. What comes for it waits while it is stalled.
type tcpClient struct {
	*mediaClient

	mu      sync.Mutex
	stalled bool
	goesOn  *sync.Cond
}

func newTCPClient(t testing.TB, tag byte, slots int, rids ...string) *tcpClient {
	t.Helper()
	c := &tcpClient{}
	c.goesOn = sync.NewCond(&c.mu)
	settings := webrtc.SettingEngine{}
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeTCP4})
	settings.SetICEProxyDialer(c)
	c.mediaClient = newMediaClientAs(t, settings, tag, true, slots, rids...)
	t.Cleanup(func() { c.stall(false) }) // Or its connections would not be closed.
	return c
}

// Dial is part of proxy.Dialer.
func (c *tcpClient) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &stallingConn{Conn: conn, client: c}, nil
}

func (c *tcpClient) stall(stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = stalled
	c.goesOn.Broadcast()
}

type stallingConn struct {
	net.Conn

	client *tcpClient
}

func (s *stallingConn) Read(b []byte) (int, error) {
	c := s.client
	c.mu.Lock()
	for c.stalled {
		c.goesOn.Wait()
	}
	c.mu.Unlock()
	return s.Conn.Read(b)
}

// TestMediaGoesByTCP both ways, between a client that has nothing else and one that has UDP as well, which it prefers.
func TestMediaGoesByTCP(t *testing.T) {
	s := newStage(t, "one")
	alice, bob := newTCPClient(t, 'a', 1), newMediaClient(t, 'b', true, 1)
	for tag, c := range map[string]*mediaClient{"alice": alice.mediaClient, "bob": bob} {
		e, _ := s.attach("room", tag, 1)
		c.negotiate(e, nil)
		e.awaitConnected()
		c.goSend()
	}
	eventually(t, "alice sees bob", func() bool { return alice.sees('b', 5) })
	eventually(t, "bob sees alice", func() bool { return bob.sees('a', 5) })
}
