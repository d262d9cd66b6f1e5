package signaling

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The page comes over HTTP/2, the WebSocket over HTTP/1.1, and other nodes still learn whether the node is ready.
func TestAPortWithTLS(t *testing.T) {
	certFile, keyFile := testkit.Certificate(t, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	_, _, e := lobbyWith(t, func(c *Config) {
		c.TLS, c.HSTS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, time.Hour
	})
	browser := func(http2 bool) *http.Client {
		transport := &http.Transport{TLSClientConfig: testkit.Trusting(t, certFile), ForceAttemptHTTP2: http2}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: generous}
	}
	response, err := browser(true).Get("https://" + e.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if told := response.Header.Get("Strict-Transport-Security"); response.ProtoMajor != 2 || response.StatusCode != http.StatusOK || told != "max-age=3600" {
		t.Errorf("the page: %s, %s, HSTS %q; want HTTP/2, 200, an hour", response.Proto, response.Status, told)
	}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+e.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}, HTTPClient: browser(false)})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn}
	c.say(&wire.Join{Token: e.rig.token("lobby", "Ada")})
	hear[*wire.Joined](c)
	if pending, _ := e.pending.Count(); pending > 1 { // the page's connection is one
		t.Errorf("%d connections are pending, though one has joined", pending)
	}
	if err := conn.CloseNow(); err != nil {
		t.Error(err)
	}
	if _, err := readiness.New(generous).Count(t.Context(), e.addr, readiness.Path); err != nil {
		t.Errorf("asked whether it is ready: %v", err)
	}
}
