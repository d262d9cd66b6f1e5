//go:build long && linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/logging"
	"github.com/pion/turn/v5"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	turnserver "github.com/holdfast-rtc/holdfast/signaling/relay"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestTheRelayIsNoWayIn has a client with a session's credential send to every port of a running cluster, and allocate without end.
func TestTheRelayIsNoWayIn(t *testing.T) {
	own := ownAddress(t)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1, MediaHost: own, TURN: true})
	signaling, err := c.Node(t.Context(), "signaling-1")
	if err != nil {
		t.Fatal(err)
	}
	media, err := c.Node(t.Context(), "sfu-1")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.Node(t.Context(), "store")
	if err != nil {
		t.Fatal(err)
	}
	given := credentialOf(t, c)
	counted := func() (counters turnserver.Counters) {
		t.Helper()
		var process struct{ Relay *turnserver.Counters }
		process.Relay = &counters
		if err := c.AdminAt(t.Context(), "http://"+signaling.Addresses[child.AddressHTTP]+"/", "process", &process); err != nil {
			t.Fatal(err)
		}
		return counters
	}
	socket := netip.MustParseAddrPort(media.Addresses[child.AddressMedia])
	refused := map[string]string{
		"loopback": "127.0.0.1:" + portOf(t, socket.String()), "loopback of IPv6, mapped": "[::ffff:127.0.0.1]:80", "the cloud's metadata": "169.254.169.254:80", "another host": "192.0.2.7:443",
		"the media node's control port": media.Addresses[child.AddressControl], "the media node's gossip": media.Addresses[child.AddressGossip],
		"the signaling node's gossip": signaling.Addresses[child.AddressGossip], "the signaling node's control port": signaling.Addresses[child.AddressControl],
		"the page": signaling.Addresses[child.AddressHTTP], "the relay itself": signaling.Addresses[child.AddressTURN], "the store": store.Addresses[child.AddressStore],
	}
	for _, name := range []string{"control", "gossip"} { // on the very address that media may go to
		refused["media address, "+name] = net.JoinHostPort(own, portOf(t, media.Addresses[name]))
	}
	for _, transport := range []string{"udp", "tcp"} {
		relayed := allocated(t, signaling.Addresses[child.AddressTURN], transport, given)
		for what, address := range refused {
			peer, err := netip.ParseAddrPort(address)
			if err != nil {
				t.Errorf("%s has no address: %q", what, address)
				continue
			}
			before := counted()
			eventually(t, time.Minute, "it is counted that "+what+" is refused", func() error {
				_, err := relayed.WriteTo([]byte("psst"), net.UDPAddrFromAddrPort(peer))
				if now := counted(); now.RefusedPeers == before.RefusedPeers {
					return fmt.Errorf("nothing is counted; sending: %w", err)
				}
				return nil
			})
			if now := counted(); now.BytesToMedia != before.BytesToMedia {
				t.Errorf("%d bytes went to %s", now.BytesToMedia-before.BytesToMedia, what)
			}
		}
		before := counted()
		if _, err := relayed.WriteTo([]byte("psst"), net.UDPAddrFromAddrPort(socket)); err != nil {
			t.Error(err)
		}
		eventually(t, time.Minute, "the packet to the media socket goes", func() error {
			if counted().BytesToMedia != before.BytesToMedia+4 {
				return errors.New("nothing goes to the media socket")
			}
			return nil
		})
	}
	t.Logf("%d addresses by two transports: %+v", len(refused), counted())
	for range 140 {
		client, conn := turnClient(t, signaling.Addresses[child.AddressTURN], "tcp", given)
		if relayed, err := client.Allocate(); err != nil {
			_ = conn.Close()
		} else {
			t.Cleanup(func() { _ = relayed.Close() })
		}
	}
	if now := counted(); now.Allocations != 128 || now.RefusedAllocations < 10 {
		t.Errorf("an identity has %d allocations, %d were refused", now.Allocations, now.RefusedAllocations)
	}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// credentialOf joins a room and returns what the session is given.
func credentialOf(t *testing.T, c *devcluster.Cluster) wire.ICEServer {
	t.Helper()
	token, err := c.Token("hall", "Eve")
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), c.URL()+"ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}}) //nolint:bodyclose // The library documents that there is none to close.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	answer, err := exchange(t.Context(), conn, &wire.Join{Token: token, Room: "hall"})
	if err != nil {
		t.Fatal(err)
	}
	joined, ok := answer.(*wire.Joined)
	if !ok {
		t.Fatalf("the answer is %s", wire.TypeOf(answer))
	}
	for _, server := range joined.ICEServers.ICEServers {
		if strings.HasPrefix(server.URLs[0], "turn:") {
			return server
		}
	}
	t.Fatalf("no relay among %+v", joined.ICEServers)
	return wire.ICEServer{}
}

func turnClient(t *testing.T, server, transport string, given wire.ICEServer) (*turn.Client, net.PacketConn) {
	t.Helper()
	var conn net.PacketConn
	if transport == "tcp" {
		stream, err := net.Dial("tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		conn = turn.NewSTUNConn(stream)
	} else {
		var err error
		if conn, err = net.ListenPacket("udp4", ":0"); err != nil {
			t.Fatal(err)
		}
	}
	client, err := turn.NewClient(&turn.ClientConfig{
		STUNServerAddr: server, TURNServerAddr: server, Conn: conn, Username: given.Username, Password: given.Credential,
		LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled},
	})
	if err == nil {
		err = client.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		_ = conn.Close()
	})
	return client, conn
}

func allocated(t *testing.T, server, transport string, given wire.ICEServer) net.PacketConn {
	t.Helper()
	client, _ := turnClient(t, server, transport, given)
	relayed, err := client.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relayed.Close() })
	return relayed
}
