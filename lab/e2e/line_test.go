package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// cappedToken joins who to a room for two, which host runs.
func cappedToken(t *testing.T, c *devcluster.Cluster, room, who string) string {
	t.Helper()
	grant := access.Everything(who, ring.RoomID(room))
	grant.Name, grant.MaxParticipants, grant.RoomAdmin = who, 2, who == "host"
	token, err := access.Mint(c.Access().Key, c.Access().Secret, grant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// sits is a synthetic person in the room.
func sits(t *testing.T, c *devcluster.Cluster, room, who string) {
	t.Helper()
	p, err := peer.New(peer.Options{URL: c.URL(), Room: room, Token: cappedToken(t, c, room, who)}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var life sync.WaitGroup
	life.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	})
	t.Cleanup(func() { cancel(); life.Wait() })
	eventually(t, time.Minute, who+" is in", func() error {
		if !p.Stats().Joined {
			return errors.New("not in")
		}
		return nil
	})
}

// queues is a socket in the line, through the front.
func queues(t *testing.T, c *devcluster.Cluster, who, token string) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(strings.TrimSuffix(c.URL(), "/"), "http")+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	if err := say(ctx, conn, &wire.Join{Token: token, Wait: true}); err != nil {
		t.Fatal(err)
	}
	_, frame, err := conn.Read(ctx)
	if m, _ := wire.DecodeServer(frame); err != nil || wire.TypeOf(m) != "waiting" {
		t.Fatalf("%s hears %s, %v", who, frame, err)
	}
	return conn
}

// A room for two is full. Somebody waits in a browser, moves up when the one before her gives up, keeps her place when her
// signaling node is killed, and enters by herself, with her camera, when the host has let her in and made a place.
func TestWaitingInLine(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 2})
	const room = "full-house"
	host := opens(t, c, room, "host")
	host.sees(t, "its controls", `call.state === 'live' && !document.querySelector('#door').hidden && document.querySelector('#most').value === '2'`)
	sits(t, c, room, "cy")
	before := queues(t, c, "dee", cappedToken(t, c, room, "dee"))
	ada := opens(t, c, room, "ada")
	reads := func(title string) {
		t.Helper()
		eventually(t, time.Minute, "ada reads "+title, func() error {
			var text string
			err := ada.eval("document.querySelector('#line-up').hidden ? '' : document.querySelector('#line-title').textContent", &text)
			if err == nil && text != title {
				err = fmt.Errorf("the page says %q", text)
			}
			return err
		})
	}
	reads("You are number 2 in line")
	behind := queues(t, c, "eve", cappedToken(t, c, room, "eve"))
	if err := say(t.Context(), before, &wire.Leave{}); err != nil {
		t.Fatal(err)
	}
	reads("You are next")
	kill(t, c, waitsAt(t, c, "ada"))
	reads("You are next")
	host.press(t, "p")
	host.sees(t, "ada first in line", waiting("ada, eve"))
	host.mustEval(t, `(document.querySelector('[aria-label="Turn away eve"]').click(), true)`, nil)
	host.sees(t, "eve gone", waiting("ada"))
	host.mustEval(t, `(document.querySelector('[aria-label="Let in ada"]').click(), true)`, nil)
	host.sees(t, "who comes next", `document.querySelector('#waiting .ago:not([hidden])')`)
	host.mustEval(t, `(() => {
	  const most = document.querySelector('#most');
	  most.value = '3';
	  return most.dispatchEvent(new Event('change'));
	})()`, nil)
	host.sees(t, "nobody in line", `document.querySelector('#waiting').hidden && call.roster.length === 3`)
	ada.knowsItself(t)
	behind.CloseRead(t.Context())
	eventually(t, time.Minute, "ada is in with her camera", func() error {
		var state string
		err := ada.eval("`${call.state} ${call.isMuted('camera')} ${call.roster.length} ${document.querySelector('#lobby').hidden}`", &state)
		if err == nil && state != "live false 3 true" {
			err = fmt.Errorf("the page is %q", state)
		}
		return err
	})
}

// opens is the page of somebody who joins the room.
func opens(t *testing.T, c *devcluster.Cluster, room, who string) *participant {
	t.Helper()
	return &participant{page: openPage(t, who, callAddress(c.URL(), room, who, url.Values{"token": {cappedToken(t, c, room, who)}}))}
}

// waiting is whether a host's page shows these people in line.
func waiting(names string) string {
	return fmt.Sprintf("[...document.querySelectorAll('#waiting .who')].map((one) => one.textContent).join(', ') === %q", names)
}

func waitsAt(t *testing.T, c *devcluster.Cluster, who string) string {
	t.Helper()
	at := findWaiting(t, c, who)
	if at == "" {
		t.Fatalf("%s waits nowhere", who)
	}
	return at
}

// findWaiting is the signaling node at which somebody waits, by its log; empty for none.
func findWaiting(t *testing.T, c *devcluster.Cluster, who string) (at string) {
	t.Helper()
	for _, node := range []string{"signaling-1", "signaling-2"} {
		text, err := c.Logs(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "somebody waits") && strings.Contains(line, who) {
				at = node
			}
		}
	}
	return at
}
