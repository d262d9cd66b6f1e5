package signaling

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// client is one browser's socket.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func (e *signalingNode) dial() *client {
	e.rig.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+e.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		e.rig.t.Fatal(err)
	}
	conn.SetReadLimit(wire.MaxMessageBytes)
	e.rig.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: e.rig.t, conn: conn}
}

// join dials and joins as name.
func (e *signalingNode) join(room, name string) (*client, *wire.Joined) {
	e.rig.t.Helper()
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.token(room, name)})
	return c, hear[*wire.Joined](c)
}

func (r *rig) token(room, name string) string {
	r.t.Helper()
	grant := access.Everything(strings.ToLower(name), ring.RoomID(room))
	grant.Name = name
	token, err := r.keys.Mint(apiKey, grant, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (c *client) say(m wire.Message) {
	c.t.Helper()
	frame, err := wire.Encode(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(string(frame))
}

func (c *client) write(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("write %.100s: %v", text, err)
	}
}

func (c *client) offer(id string, fresh bool) {
	c.t.Helper()
	c.say(&wire.Offer{ID: id, SDP: "offer " + id, Fresh: fresh, Senders: wire.List[wire.Sender]{{Mid: "0", Source: wire.SourceCamera}}})
}

// next reads one message.
func (c *client) next() wire.Message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	_, frame, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	m, err := wire.DecodeServer(frame)
	if err != nil {
		c.t.Fatalf("decode %s: %v", frame, err)
	}
	return m
}

// hear reads one message, which must be of that kind.
func hear[M wire.Message](c *client) M {
	c.t.Helper()
	got := c.next()
	m, ok := got.(M)
	if !ok {
		text, _ := wire.Encode(got)
		c.t.Fatalf("heard %s, want %T", text, m)
	}
	return m
}

// closed reads until the socket closes and returns the code. Messages on the way
// are returned too.
func (c *client) closed() (websocket.StatusCode, []wire.Message) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	var heard []wire.Message
	for {
		_, frame, err := c.conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err), heard
		}
		m, err := wire.DecodeServer(frame)
		if err != nil {
			c.t.Fatalf("decode %s: %v", frame, err)
		}
		heard = append(heard, m)
	}
}
