package signaling

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestGarbageIsAnsweredAndTooMuchOfItEnds(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	ada, _ := r.signalingNode(nil).join("lobby", "Ada")
	for frame, want := range map[string]wire.Error{
		`{`:                                            {Code: wire.CodeBadMessage},
		`{"type":"dance","request":"1"}`:               {Code: wire.CodeUnknownType, Request: "1"},
		`{"type":"mute","request":"2"}`:                {Code: wire.CodeBadMessage, Request: "2"},
		`{"type":"mute","request":3}`:                  {Code: wire.CodeBadMessage},
		`{"type":"join","token":"x"}`:                  {Code: wire.CodeBadMessage},
		`{"type":"door","request":"4"}`:                {Code: wire.CodeNotAllowed, Request: "4"},
		`{"request":"5","type":"watch","users":["a"]}`: {Code: wire.CodeNotAllowed, Request: "5"},
	} {
		ada.write(frame)
		if fault := hear[*wire.Error](ada); fault.Code != want.Code || fault.Request != want.Request || !strings.HasSuffix(fault.Message, ".") {
			t.Errorf("%s is answered with %+v, want %s of %q", frame, fault, want.Code, want.Request)
		}
	}
	if err := ada.conn.Write(context.Background(), websocket.MessageBinary, []byte{1}); err != nil {
		t.Fatal(err)
	}
	hear[*wire.Error](ada)
	for range nonsenseMessages {
		if ada.conn.Write(context.Background(), websocket.MessageText, []byte(`[]`)) != nil {
			break // cut off before we were through
		}
	}
	if code, _ := ada.closed(); code != websocket.StatusPolicyViolation {
		t.Fatalf("closed with %v", code)
	}
}

func TestAFloodIsDroppedAndThenEnded(t *testing.T) {
	_, _, e := lobbyWith(t, func(c *Config) { c.MessagesPerSecond, c.MessageBurst = 0.001, 5 })
	ada, _ := e.join("lobby", "Ada")
	for range 4 + 1 + droppedInARow + 10 {
		if ada.conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"ping","t":1,"request":"7"}`)) != nil {
			break
		}
	}
	code, heard := ada.closed()
	pongs, faults := 0, 0
	for _, m := range heard {
		switch m := m.(type) {
		case *wire.Pong:
			pongs++
		case *wire.Error:
			faults++
			if m.Code != wire.CodeTooManyMessages || m.Request != "7" {
				t.Errorf("heard %+v", m)
			}
		}
	}
	if code != websocket.StatusPolicyViolation || pongs != 4 || faults != 1 {
		t.Fatalf("closed with %v after %d pongs and %d errors", code, pongs, faults)
	}
}

func TestAHugeMessageCloses(t *testing.T) {
	r := newRig(t)
	c := r.signalingNode(nil).dial()
	_ = c.conn.Write(context.Background(), websocket.MessageText, make([]byte, wire.MaxMessageBytes+1))
	if code, _ := c.closed(); code != websocket.StatusMessageTooBig {
		t.Fatalf("closed with %v", code)
	}
}

func TestASilentClientIsSentAway(t *testing.T) {
	r := newRig(t)
	c := r.signalingNode(func(c *Config) { c.FirstMessageLimit = 10 * time.Millisecond }).dial()
	if fault := hear[*wire.Error](c); fault.Code != wire.CodeBadMessage {
		t.Fatalf("heard %+v", fault)
	}
	if code, _ := c.closed(); code != websocket.StatusPolicyViolation {
		t.Fatalf("closed with %v", code)
	}
}

// TestASlowReaderIsCutOff has a client that reads nothing while its room talks. Its
// receive buffer is small, so that little talk fills it.
func TestASlowReaderIsCutOff(t *testing.T) {
	r, n, e := lobbyWith(t, func(c *Config) { c.WriteLimit = time.Hour }) // so the queue alone ends it
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetReadBuffer(4 << 10)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	conn, _, err := websocket.Dial(context.Background(), "ws://"+e.addr+"/ws", &websocket.DialOptions{
		Subprotocols: []string{wire.Subprotocol}, HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	ada := &client{t: t, conn: conn}
	t.Cleanup(func() { _ = conn.CloseNow() })
	ada.say(&wire.Join{Token: r.token("lobby", "Ada")})
	hear[*wire.Joined](ada)
	noise := &control.Roster{Peers: []*control.Peer{{Id: "p", Name: strings.Repeat("x", 20_000)}}}
	testkit.Eventually(t, "end of the session", func() bool {
		for range 50 {
			n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Roster{Roster: noise}})
		}
		return len(e.Hub().PinnedTo(n.boot)) == 0
	})
	if n.mu.Lock(); len(n.peers) != 1 {
		t.Errorf("the node has %d peers, want 1: being slow is no leave", len(n.peers))
	}
	n.mu.Unlock()
}

func TestStrangeOriginsAndProtocolsAreRefused(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(func(c *Config) { c.Origins = []string{"*.example.org"} })
	for name, tc := range map[string]struct {
		origin, protocol string
		ok               bool
	}{
		"own page":       {"http://" + e.addr, wire.Subprotocol, true},
		"allowed page":   {"https://app.example.org", wire.Subprotocol, true},
		"no page":        {"", wire.Subprotocol, true},
		"a stranger":     {"https://example.com", wire.Subprotocol, false},
		"another tongue": {"", "holdfast.v0", false},
		"no tongue":      {"", "", false},
	} {
		options := &websocket.DialOptions{HTTPHeader: map[string][]string{}}
		if tc.origin != "" {
			options.HTTPHeader.Set("Origin", tc.origin)
		}
		if tc.protocol != "" {
			options.Subprotocols = []string{tc.protocol}
		}
		conn, _, err := websocket.Dial(context.Background(), "ws://"+e.addr+"/ws", options)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
}

// TestAClientThatIsGoneIsNoticed has a client that neither reads nor closes: it answers no ping.
func TestAClientThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel() // it waits
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	// Long enough for the answer to the join to be read on a busy machine: reading answers pings, too.
	e := r.signalingNode(func(c *Config) { c.PingInterval, c.PongLimit = 5*time.Millisecond, 2*time.Second })
	_, _ = e.join("lobby", "Ada")
	testkit.Eventually(t, "end of the session", func() bool { return len(e.Hub().PinnedTo(n.boot)) == 0 })
	if n.mu.Lock(); len(n.peers) != 1 {
		t.Errorf("the node has %d peers, want Ada in her grace time", len(n.peers))
	}
	n.mu.Unlock()
}
