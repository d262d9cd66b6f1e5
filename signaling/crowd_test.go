package signaling

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestACrowdThatOnlyWaitsKeepsNobodyOut opens far more connections than may wait, some
// silent, some with half a request, some upgraded, while one person talks and another joins.
func TestACrowdThatOnlyWaitsKeepsNobodyOut(t *testing.T) {
	_, _, e := lobbyWith(t, func(c *Config) { c.MaxWaitingPerAddress = 8 })
	ada, _ := e.join("lobby", "Ada")
	crowd := []*client{e.dial()}
	crowd[0].goesOn() // Its session runs: before, it would be cut off without a word.
	for range 12 {
		for _, text := range []string{"", "GET /ws HTTP/1.1\r\nHost: x\r\nX-Slow: "} {
			conn, err := net.Dial("tcp", e.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
		}
		crowd = append(crowd, e.dial())
	}
	fault := hear[*wire.Error](crowd[0])
	if fault.Code != wire.CodeTooManySockets || !fault.Retryable || !strings.Contains(fault.Message, "try again") {
		t.Errorf("who has waited longest hears %+v", fault)
	}
	crowd[0].closed()
	testkit.Eventually(t, "end of the crowd's overhang", func() bool {
		now, _ := e.pending.Count()
		return now <= 8
	})
	e.join("lobby", "Grace")
	if who := hear[*wire.PeerJoined](ada); who.Peer.Name != "Grace" {
		t.Errorf("heard %+v", who)
	}
	if _, sentAway := e.pending.Count(); sentAway < 20 {
		t.Errorf("%d were sent away, want 20 and more", sentAway)
	}
}

// TestAFarewellTakesNoLongerThanItMay has a refused client begin a frame that it never ends: the
// close handshake would wait for the rest of it.
func TestAFarewellTakesNoLongerThanItMay(t *testing.T) {
	t.Parallel() // it waits for the limit to pass, in which a busy machine must write what is said before
	r := newRig(t)
	e := r.signalingNode(func(c *Config) { c.WriteLimit = 2 * time.Second })
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: "+wire.Subprotocol+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"type":"leave"}`)
	frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...) // masked with zeros
	endless := binary.BigEndian.AppendUint64([]byte{0x82, 0x80 | 127}, 1<<40)
	if _, err := conn.Write(append(append(frame, endless...), 0, 0, 0, 0, 'x')); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	heard, err := io.ReadAll(conn) // ends when the signaling node closes the connection
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the signaling node still waits; it said %q", heard)
	}
	if !strings.Contains(string(heard), string(wire.CodeBadMessage)) {
		t.Errorf("heard %q", heard)
	}
	testkit.Eventually(t, "empty lobby", func() bool { now, _ := e.pending.Count(); return now == 0 })
}

// TestAClientIsReadAtItsPace: what never becomes a message, such as frames without
// bytes, is bounded too.
func TestAClientIsReadAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst, perSecond = 64 << 10, 16 << 10
		ours, theirs := net.Pipe()
		l := connlimit.New(connlimit.Limits{Total: 1, PerAddress: 1})
		conn := &clientConn{
			Conn: &connlimit.Conn{Conn: ours, Pending: l.Add(&net.TCPAddr{}, func() {})},
			pace: rate.NewLimiter(perSecond, burst),
		}
		go func() {
			_, _ = theirs.Write(make([]byte, burst+10*perSecond))
			_ = theirs.Close()
		}()
		began := time.Now()
		n, err := io.Copy(io.Discard, conn)
		if took := time.Since(began); err != nil || n != burst+10*perSecond || took < 9*time.Second || took > 11*time.Second {
			t.Errorf("%d bytes in %v (%v), want the burst at once and the rest in 10 s", n, took, err)
		}
		_ = conn.Close()
	})
}

func TestWhoComesAndGoesTooOftenIsHeldBack(t *testing.T) {
	r, _, e := lobbyWith(t, func(c *Config) { c.Limits.Entries = limits.Rate{PerSecond: 0.001, Burst: 3} })
	grace, _ := e.join("lobby", "Grace")
	for range 3 {
		ada, _ := e.join("lobby", "Ada")
		ada.say(&wire.Leave{})
		ada.closed()
	}
	for range 20 {
		ada := e.dial()
		ada.say(&wire.Join{Token: r.token("lobby", "Ada")})
		if fault := hear[*wire.Error](ada); fault.Code != wire.CodeTooManySockets || !fault.Retryable || fault.RetryAfterMs == 0 {
			t.Fatalf("heard %+v", fault)
		}
		if code, _ := ada.closed(); code != websocket.StatusTryAgainLater {
			t.Fatalf("closed with %v", code)
		}
	}
	e.join("lobby", "Hedy")
	came := 0
	for hear[*wire.PeerJoined](grace).Peer.Name != "Hedy" {
		came++
	}
	if came != 3 {
		t.Errorf("the others hear of Ada %d times, want 3", came)
	}
	testkit.Eventually(t, "end of Ada's sockets", func() bool { return e.sockets.Load() == 2 })
}

func TestOffersAreHeldBack(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	ada, _ := r.signalingNode(func(c *Config) { c.OffersPerSecond, c.OfferBurst = 0.001, 2 }).join("lobby", "Ada")
	for _, id := range []string{"o-1", "o-2"} {
		ada.offer(id, true)
		hear[*wire.Answer](ada)
	}
	ada.offer("o-3", true)
	if m := hear[*wire.OfferRejected](ada); m.ID != "o-3" || m.Code != wire.CodeTooManyMessages || m.Epoch != firstEpoch {
		t.Fatalf("heard %+v", m)
	}
	ada.say(&wire.Ping{T: 1})
	hear[*wire.Pong](ada)
	if strings.Contains(n.said(), "o-3") {
		t.Error("the node heard of the third offer")
	}
}

// TestStrangersMaySayLess: a message before the join is bounded more tightly than one after it.
func TestStrangersMaySayLess(t *testing.T) {
	_, _, e := lobby(t)
	long := `{"type":"ping","t":1,"pad":"` + strings.Repeat("x", strangerBytes) + `"}`
	stranger := e.dial()
	_ = stranger.conn.Write(context.Background(), websocket.MessageText, []byte(long))
	if code, _ := stranger.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("closed with %v", code)
	}
	ada, _ := e.join("lobby", "Ada")
	ada.write(long)
	hear[*wire.Pong](ada)
}

func TestAFullNodeSaysSo(t *testing.T) {
	_, _, e := lobbyWith(t, func(c *Config) { c.MaxSockets = 1 })
	ada, _ := e.join("lobby", "Ada")
	_, response, err := websocket.Dial(context.Background(), "ws://"+e.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("a second socket: %v", err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), string(wire.CodeTooManySockets)) {
		t.Fatalf("it is told %s (%v)", text, err)
	}
	if status, body, _ := e.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "as many connections") {
		t.Errorf("full, it is ready: %d %s", status, body)
	}
	ada.say(&wire.Leave{})
	ada.closed()
	testkit.Eventually(t, "place for another", func() bool { return e.sockets.Load() == 0 })
	if status, body, _ := e.get("/readyz", ""); status != http.StatusOK {
		t.Errorf("with a place, it is not ready: %d %s", status, body)
	}
	e.join("lobby", "Grace")
}
