package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// attackerIP is another address than the people's.
var attackerIP = net.IPv4(127, 0, 0, 2)

// portFront is the balancer's port, behind which everybody has its address.
const portFront = "front"

const attackLimit = time.Minute

// attacker has another address, knows every port of the cluster, and has a token for a room with people in it.
type attacker struct {
	access  devcluster.Access
	room    string
	ports   map[string]string // host:port by kind, of the nodes that hold the call
	held    []io.Closer       // what is held open until the end of the round
	serial  int               // of names
	perhaps *http.Client
}

func newAttacker(t *testing.T, c *devcluster.Cluster, room string, nodes ...string) *attacker {
	t.Helper()
	a := &attacker{access: c.Access(), room: room, ports: make(map[string]string)}
	for _, name := range nodes {
		node, err := c.Node(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, address := range node.Addresses {
			switch {
			case kind == devcluster.AddressGossip:
				kind += " of " + string(node.Role)
			case node.Role == devcluster.RoleFront:
				kind = portFront
			}
			a.ports[kind] = address
		}
	}
	a.perhaps = &http.Client{Transport: &http.Transport{DialContext: a.dialTCP, DisableKeepAlives: true}, Timeout: attackLimit}
	return a
}

func (a *attacker) release() {
	for _, c := range a.held {
		_ = c.Close()
	}
	a.held = nil
}

func (a *attacker) dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: attackerIP}}
	return dialer.DialContext(ctx, network, address)
}

func (a *attacker) tcp(ctx context.Context, kind string) (net.Conn, error) {
	return a.dialTCP(ctx, "tcp", a.ports[kind])
}

func (a *attacker) udp(ctx context.Context, kind string) (net.Conn, error) {
	dialer := &net.Dialer{LocalAddr: &net.UDPAddr{IP: attackerIP}}
	return dialer.DialContext(ctx, "udp", a.ports[kind])
}

// token makes a good token unless it is changed.
func (a *attacker) token(name string, ttl time.Duration, change func(*access.Grant)) string {
	grant := access.Everything(name, ring.RoomID(a.room))
	if change != nil {
		change(&grant)
	}
	token, _ := access.Mint(a.access.Key, a.access.Secret, grant, ttl) // It fails for no grant of ours.
	return token
}

func (a *attacker) name() string {
	a.serial++
	return fmt.Sprintf("attacker-%d", a.serial)
}

type attackSocket struct{ *websocket.Conn }

func (a *attacker) socket(ctx context.Context) (*attackSocket, error) {
	conn, response, err := websocket.Dial(ctx, "ws://"+a.ports[devcluster.AddressHTTP]+"/ws", &websocket.DialOptions{
		Subprotocols: []string{wire.Subprotocol}, HTTPClient: a.perhaps,
	})
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	return &attackSocket{conn}, nil
}

// joined is a socket with a session in the people's room.
func (a *attacker) joined(ctx context.Context, name string) (*attackSocket, error) {
	s, err := a.socket(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.say(ctx, &wire.Join{Token: a.token(name, time.Hour, nil)}); err != nil {
		return nil, errors.Join(err, s.CloseNow())
	}
	if _, err := awaitMessage[*wire.Joined](ctx, s); err != nil {
		return nil, errors.Join(err, s.CloseNow())
	}
	return s, nil
}

func (s *attackSocket) say(ctx context.Context, m wire.Message) error {
	frame, err := wire.Encode(m)
	if err != nil {
		return err
	}
	return s.Write(ctx, websocket.MessageText, frame)
}

var errAnswer = errors.New("unexpected answer")

// awaitMessage reads until a message of the kind comes; errors of the server end it.
func awaitMessage[M wire.Message](ctx context.Context, s *attackSocket) (M, error) {
	var none M
	for {
		_, frame, err := s.Read(ctx)
		if err != nil {
			return none, err
		}
		m, err := wire.DecodeServer(frame)
		if err != nil {
			return none, err
		}
		if wanted, ok := m.(M); ok {
			return wanted, nil
		}
		if fault, ok := m.(*wire.Error); ok {
			return none, fmt.Errorf("%w: %s: %s", errAnswer, fault.Code, fault.Message)
		}
	}
}

// refused says a first message, and checks that it is refused with the code.
func (a *attacker) refused(ctx context.Context, first string, want wire.Code) error {
	s, err := a.socket(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	if err := s.Write(ctx, websocket.MessageText, []byte(first)); err != nil {
		return err
	}
	fault, err := awaitMessage[*wire.Error](ctx, s)
	if err != nil {
		return err
	}
	if fault.Code != want || !strings.HasSuffix(fault.Message, ".") {
		return fmt.Errorf("%w to %.80s: %s: %s, want %s", errAnswer, first, fault.Code, fault.Message, want)
	}
	return nil
}

// endsWith reads until the socket closes, and checks the code.
func (s *attackSocket) endsWith(ctx context.Context, want websocket.StatusCode) error {
	for {
		if _, _, err := s.Read(ctx); err != nil {
			if got := websocket.CloseStatus(err); got != want {
				return fmt.Errorf("%w: closed with %v (%w), want %v", errAnswer, got, err, want)
			}
			return nil
		}
	}
}

// upgraded is a raw connection to a port that has become a WebSocket.
func (a *attacker) upgraded(ctx context.Context, kind string) (net.Conn, error) {
	conn, err := a.tcp(ctx, kind)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: "+wire.Subprotocol+"\r\n\r\n")
	if err == nil {
		var line string
		if line, err = bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.Contains(line, " 101 ") {
			err = fmt.Errorf("%w: %s", errAnswer, line)
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func several(n int, attack func(i int) error) error {
	var all sync.WaitGroup
	faults := make([]error, n)
	for i := range n {
		all.Go(func() { faults[i] = attack(i) })
	}
	all.Wait()
	return errors.Join(faults...)
}
