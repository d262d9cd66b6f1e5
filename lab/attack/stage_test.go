//go:build linux

package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// patience bounds every wait: the machine may be busy.
	patience = 60 * time.Second
	// bystanderRoom is where the healthy call is.
	bystanderRoom = "bystanders"
	// mostGap is the longest time without a packet that a bystander may see: what an attack costs a machine of two
	// cores that runs the attacker, too, and not what a failure would cost.
	mostGap = 2 * time.Second
)

// stage is a cluster of one media and one signaling node with a healthy call of two.
type stage struct {
	t       *testing.T
	cluster *devcluster.Cluster
	url     string // of the signaling node
	keys    *access.Keyring
	call    []*peer.Peer
}

// newStage starts it, with more environment for both nodes.
func newStage(t *testing.T, env ...string) *stage {
	t.Helper()
	return newStageOf(t, 1, func(*devcluster.Cluster) {}, env...)
}

// newStageOf starts so many nodes of each role, and the call, on signaling-1, after prepare.
func newStageOf(t *testing.T, nodes int, prepare func(*devcluster.Cluster), env ...string) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	wide := append(slices.Clone(env), "HOLDFAST_EGRESS_BITS=1000000000000", "HOLDFAST_EGRESS_PACKETS=1000000000")
	options := devcluster.Options{SFU: nodes, Signaling: nodes, NodeEnv: map[string][]string{}}
	for i := range nodes {
		options.NodeEnv[fmt.Sprint("signaling-", i+1)], options.NodeEnv[fmt.Sprint("sfu-", i+1)] = env, wide
	}
	c, err := devcluster.Start(ctx, options)
	if err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	t.Cleanup(c.Close)
	prepare(c)
	node, err := c.Node(ctx, "signaling-1")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := access.ParseKeyring(c.Access().Key + ":" + c.Access().Secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, cluster: c, url: "http://" + node.Addresses[child.AddressHTTP], keys: keys}
	s.begin()
	return s
}

// begin lets two people call each other until the test ends.
func (s *stage) begin() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	s.t.Cleanup(func() { cancel(); calls.Wait() })
	for i := range 2 {
		p, err := peer.New(peer.Options{URL: s.url, Token: s.token(bystanderRoom, fmt.Sprint("bystander-", i)), Room: bystanderRoom}, quiet())
		if err != nil {
			s.t.Fatal(err)
		}
		s.call = append(s.call, p)
		calls.Go(func() {
			if err := p.Run(ctx); err != nil {
				s.t.Errorf("bystander %d: %v", i, err)
			}
		})
	}
	s.eventually("the bystanders receive each other", s.receiving)
	for _, p := range s.call {
		p.ForgetGaps()
	}
}

func (s *stage) token(room, identity string) string {
	s.t.Helper()
	token, err := s.keys.Mint("", access.Everything(identity, ring.RoomID(room)), time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// receiving fails unless each of the two gets fresh sound and picture of the other.
func (s *stage) receiving() error {
	for i, p := range s.call {
		from, got := s.call[1-i].Stats().Peer, p.Stats()
		for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
			stream := got.Streams[peer.StreamID{Peer: from, Source: source}]
			if from == "" || stream.Packets == 0 || time.Since(stream.Last) > time.Second {
				return fmt.Errorf("bystander %d has no fresh %s: %d packets", i, source, stream.Packets)
			}
		}
	}
	return nil
}

// unharmed fails the test unless the call went on as if nothing had been: the same sockets and
// connections, no packet dropped, no gap.
func (s *stage) unharmed() {
	s.t.Helper()
	s.eventually("the bystanders still receive each other", s.receiving)
	for i, p := range s.call {
		got := p.Stats()
		if got.Connections != 1 || len(got.Restarts) != 0 || got.SocketsLost != 0 {
			s.t.Errorf("bystander %d: %d connections, %d restarts, %d sockets lost", i, got.Connections, len(got.Restarts), got.SocketsLost)
		}
		for id, stream := range got.Streams {
			if gap := stream.GapUntil(time.Now()); gap > mostGap {
				s.t.Errorf("bystander %d: %v without a packet of %v", i, gap, id)
			}
		}
	}
	for _, room := range s.rooms() {
		if room.Room == bystanderRoom && room.Dropped != 0 {
			s.t.Errorf("the media node dropped %d packets of the call", room.Dropped)
		}
	}
}

// attack is what somebody does to a stage.
type attack struct {
	name string
	do   func(*stage)
}

// each lets attacks be made one after the other. None may cost the node more memory than that, unless it is "", nor harm the
// call.
func (s *stage) each(node string, most int, attacks []attack) {
	for _, attack := range attacks {
		s.t.Run(attack.name, func(t *testing.T) {
			on := *s
			on.t = t
			before := 0
			if node != "" {
				before = on.memory(node)
			}
			attack.do(&on)
			on.newcomer("newcomer to " + attack.name)
			if node != "" {
				if cost := on.memory(node) - before; cost > most {
					t.Errorf("it costs %s %d MiB", node, cost>>20)
				}
			}
			on.unharmed()
		})
	}
}

// heldRoom is a room as the operator's API tells of it.
type heldRoom struct {
	Room    string `json:"room"`
	Node    string `json:"node"`
	Dropped uint64 `json:"packetsDropped"`
	Peers   []struct {
		Identity string `json:"identity"`
	} `json:"peers"`
}

func (s *stage) rooms() []heldRoom {
	s.t.Helper()
	var answer struct {
		Rooms []heldRoom `json:"rooms"`
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.cluster.Admin(ctx, "rooms", &answer); err != nil {
		s.t.Fatal(err)
	}
	return answer.Rooms
}

// join opens a socket and says join; it returns the server's first word.
func (s *stage) join(ctx context.Context, token, room string) (*websocket.Conn, wire.Message, error) {
	return say(ctx, s.url, &wire.Join{Token: token, Room: room})
}

// say opens a socket at a signaling node and says something first; it returns the server's first word.
func say(ctx context.Context, url string, first wire.Message) (*websocket.Conn, wire.Message, error) {
	conn, err := socket(ctx, url, http.DefaultClient)
	if err != nil {
		return nil, nil, err
	}
	var frame []byte
	if err = write(ctx, conn, first); err == nil {
		_, frame, err = conn.Read(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.CloseNow())
	}
	answer, err := wire.DecodeServer(frame)
	return conn, answer, err
}

// socket opens a WebSocket at a signaling node.
func socket(ctx context.Context, url string, client *http.Client) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}, HTTPClient: client})
	if err == nil {
		conn.SetReadLimit(wire.MaxMessageBytes)
	}
	return conn, err
}

func write(ctx context.Context, conn *websocket.Conn, message wire.Message) error {
	frame, err := wire.Encode(message)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, frame)
}

// lastWord reads until the socket is closed.
func lastWord(ctx context.Context, conn *websocket.Conn) (last wire.Message, err error) {
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return last, err
		}
		if last, err = wire.DecodeServer(frame); err != nil {
			return nil, err
		}
	}
}

// address is one of a node's.
func (s *stage) address(node, kind string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	n, err := s.cluster.Node(ctx, node)
	if err != nil {
		s.t.Fatal(err)
	}
	return n.Addresses[kind]
}

// dial connects from another address than the bystanders', until the test ends.
func (s *stage) dial(network, address string) net.Conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var from net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	if network == "udp" {
		from = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// upgrade asks for a WebSocket and does not read the answer.
func (s *stage) upgrade(address string) net.Conn {
	s.t.Helper()
	conn := s.dial("tcp", address)
	if _, err := io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: "+wire.Subprotocol+"\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// newcomer must get into the call's room, soon, whatever goes on.
func (s *stage) newcomer(identity string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	conn, answer, err := s.joinOnceServed(ctx, s.token(bystanderRoom, identity), storeIsBusy)
	if err != nil {
		s.t.Fatalf("a newcomer: %v", err)
	}
	if _, ok := answer.(*wire.Joined); !ok {
		s.t.Fatalf("a newcomer is told %+v", answer)
	}
	if err := write(ctx, conn, &wire.Leave{}); err != nil {
		s.t.Fatalf("a newcomer leaves: %v", err)
	}
	_ = conn.CloseNow()
}

// eventually waits for a condition; met says what is still missing.
func (s *stage) eventually(what string, met func() error) {
	s.t.Helper()
	testkit.Within(s.t, patience, what, met)
}
