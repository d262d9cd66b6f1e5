package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// here is a socket whose user is online.
type here struct {
	t    *testing.T
	conn *websocket.Conn
}

// comes connects a user, in no room, to a signaling node.
func comes(t *testing.T, c *devcluster.Cluster, node, user string) here {
	t.Helper()
	n, err := c.Node(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+n.Addresses[devcluster.AddressHTTP]+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	token, err := access.Mint(c.Access().Key, c.Access().Secret, access.Grant{Identity: user, CanWatch: true}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h := here{t, conn}
	h.say(&wire.Connect{Token: token})
	if m, err := h.hears(time.Minute); err != nil {
		t.Fatal(err)
	} else if _, ok := m.(*wire.Connected); !ok {
		t.Fatalf("%s is answered %+v", user, m)
	}
	return h
}

func (h here) say(m wire.Message) {
	h.t.Helper()
	frame, err := wire.Encode(m)
	if err == nil {
		err = h.conn.Write(h.t.Context(), websocket.MessageText, frame)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// hears reads one message. Past the limit the connection is gone.
func (h here) hears(limit time.Duration) (wire.Message, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	_, frame, err := h.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return wire.DecodeServer(frame)
}

// stays answers pings and hears nothing else.
func (h here) stays() here {
	h.conn.CloseRead(context.WithoutCancel(h.t.Context()))
	return h
}

// learns waits until the watched users are in these states, and returns every change, as "user state".
func (h here) learns(want map[string]string) (changes []string) {
	h.t.Helper()
	for missing := len(want); missing > 0; {
		m, err := h.hears(time.Minute)
		if err != nil {
			h.t.Fatalf("after %v: %v", changes, err)
		}
		list, ok := m.(*wire.Presence)
		if !ok {
			h.t.Fatalf("heard %+v", m)
		}
		for _, user := range list.Users {
			changes = append(changes, user.User+" "+user.State)
			if want[user.User] == user.State {
				missing--
			}
		}
	}
	return changes
}

// TestLeavesAreAnnouncedOnce kills a client, one tab of five, and with SIGKILL a signaling node that holds all of one user's sockets,
// some of another's, and those of a third who goes elsewhere. Exactly those who are gone leave, once each, and not before a TTL.
func TestLeavesAreAnnouncedOnce(t *testing.T) {
	for name, redis := range map[string]func(t *testing.T) string{
		"embedded": func(*testing.T) string { return "" },
		"redis":    func(t *testing.T) string { return storetest.StartAlone(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 3, Redis: redis(t)})
			comes(t, c, "signaling-1", "gone").stays()
			comes(t, c, "signaling-1", "half").stays()
			comes(t, c, "signaling-2", "half").stays()
			comes(t, c, "signaling-1", "mover").stays()
			quits, tab := comes(t, c, "signaling-2", "quits").stays(), comes(t, c, "signaling-2", "tabs").stays()
			for range 4 {
				comes(t, c, "signaling-2", "tabs").stays()
			}
			users := wire.List[string]{"gone", "half", "mover", "quits", "tabs"}
			watcher, all := comes(t, c, "signaling-3", "watcher"), make(map[string]string)
			for _, user := range users {
				all[user] = "online"
			}
			watcher.say(&wire.Watch{Users: users})
			watcher.learns(all)

			began := time.Now()
			_, _ = quits.conn.CloseNow(), tab.conn.CloseNow()
			if err := c.Kill(t.Context(), "signaling-1", syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			comes(t, c, "signaling-2", "mover").stays()
			changes := watcher.learns(map[string]string{"gone": "offline", "quits": "offline"})
			// A heartbeat may be a beat (5 s) old when its sender dies. A busy machine may take longer than TTL and sweep, 17 s.
			if took := time.Since(began); took < 9*time.Second || took > 40*time.Second {
				t.Errorf("the leaves took %v", took)
			}
			t.Logf("the leaves took %v", time.Since(began))
			m, err := watcher.hears(20 * time.Second) // longer than a TTL and a sweep
			if len(changes) != 2 || m != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after the kill the watcher heard %s, then %+v, %v", strings.Join(changes, ", "), m, err)
			}
			var answer struct {
				Users []struct {
					User        string
					State       string
					Connections int
				}
			}
			if err := c.Admin(t.Context(), "presence?user=gone&user=half&user=mover&user=quits&user=tabs", &answer); err != nil {
				t.Fatal(err)
			}
			const want = "[{gone offline 0} {half online 1} {mover online 1} {quits offline 0} {tabs online 4}]"
			if got := fmt.Sprint(answer.Users); got != want {
				t.Errorf("the users are %s, want %s", got, want)
			}
		})
	}
}
