package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestThePageCountsTheAudience: beyond the people that a room lists the page says how many watch. Who raises a hand is shown by name.
func TestThePageCountsTheAudience(t *testing.T) {
	t.Parallel()
	needChromium(t, 1)
	c := startCluster(t, devcluster.Options{SFU: 1, NodeEnv: map[string][]string{"sfu-1": {"HOLDFAST_LISTED_PER_ROOM=1"}}})
	host := join(t, c.URL(), "lecture", "Ada", nil)
	host.knowsItself(t)
	var watchers []*websocket.Conn
	for _, name := range []string{"Bob", "Clara", "Dora"} {
		watchers = append(watchers, watcherJoins(t, c, "lecture", name))
	}
	saysThePage(t, host, "3 more are watching", "4 people")
	if _, err := exchange(t.Context(), watchers[0], &wire.Hand{Raised: true}); err != nil {
		t.Fatal(err)
	}
	saysThePage(t, host, "2 more are watching", "Bob")
}

// watcherJoins joins a room with a token that allows watching only.
func watcherJoins(t *testing.T, c *devcluster.Cluster, room, name string) *websocket.Conn {
	t.Helper()
	grant := access.Everything(name, ring.RoomID(room))
	grant.CanPublish, grant.Name = false, name
	token, err := access.Mint(c.Access().Key, c.Access().Secret, grant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, c.URL()+"ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}}) //nolint:bodyclose // The library documents that there is none to close.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.CloseNow() })
	answer, err := exchange(ctx, socket, &wire.Join{Token: token, Room: room})
	if joined, is := answer.(*wire.Joined); err != nil || !is || len(joined.Roster) != 2 {
		t.Fatalf("%s hears %+v, %v", name, answer, err)
	}
	return socket
}

// saysThePage waits until the panel of people shows these words.
func saysThePage(t *testing.T, p *participant, words ...string) {
	t.Helper()
	eventually(t, time.Minute, p.name+"'s page says "+strings.Join(words, " and "), func() error {
		var text string
		err := p.eval("document.querySelector('#panel-people').textContent", &text)
		for _, word := range words {
			if err == nil && !strings.Contains(text, word) {
				err = fmt.Errorf("%w: %q", errStates, text)
			}
		}
		return err
	})
}
