package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// visitor is a socket of somebody in a large room with a cap.
type visitor struct {
	t *testing.T
	c *devcluster.Cluster
	*websocket.Conn
}

func (l visitor) at(node string, first wire.Message) visitor {
	l.t.Helper()
	n, err := l.c.Node(l.t.Context(), node)
	if err != nil {
		l.t.Fatal(err)
	}
	l.Conn, _, err = websocket.Dial(l.t.Context(), "ws://"+n.Addresses[child.AddressHTTP]+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = l.CloseNow() })
	l.SetReadLimit(wire.MaxMessageBytes)
	if err := say(l.t.Context(), l.Conn, first); err != nil {
		l.t.Fatal(err)
	}
	return l
}

func (l visitor) token(room, who string) string {
	l.t.Helper()
	grant := access.Everything(who, ring.RoomID(room))
	grant.ExpectedSize, grant.MaxParticipants = 300, 2
	token, err := access.Mint(l.c.Access().Key, l.c.Access().Secret, grant, time.Hour)
	if err != nil {
		l.t.Fatal(err)
	}
	return token
}

// asks joins once, and returns the answer.
func (l visitor) asks(node, room, who string) (visitor, wire.Message) {
	l.t.Helper()
	l = l.at(node, &wire.Join{Token: l.token(room, who), Wait: true})
	return l, awaits[wire.Message](l)
}

// waits is a client with media who stands in line.
func (l visitor) waits(room, who string) *peer.Peer {
	l.t.Helper()
	p, err := peer.New(peer.Options{URL: l.c.URL(), Room: room, Token: l.token(room, who), Wait: true}, quiet())
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var life sync.WaitGroup
	life.Go(func() {
		if err := p.Run(ctx); err != nil {
			l.t.Errorf("%s: %v", who, err)
		}
	})
	l.t.Cleanup(func() { cancel(); life.Wait() })
	return p
}

// joins asks until the answer is of the type M: a cluster that has just started refuses for a moment.
func joins[M wire.Message](l visitor, node, room, who string) (in visitor, answer M) {
	l.t.Helper()
	eventually(l.t, leavesWithin, fmt.Sprintf("%s gets a %T", who, answer), func() error {
		next, m := l.asks(node, room, who)
		in = next
		var is bool
		if answer, is = m.(M); !is {
			return fmt.Errorf("%w: %s hears %+v", errStates, who, m)
		}
		return nil
	})
	return in, answer
}

// awaits reads until a message of the type M.
func awaits[M wire.Message](l visitor) (m M) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), leavesWithin)
	defer cancel()
	for {
		_, frame, err := l.Read(ctx)
		if err != nil {
			l.t.Fatalf("no %T: %v", m, err)
		}
		next, err := wire.DecodeServer(frame)
		if found, ok := next.(M); ok && err == nil {
			return found
		}
	}
}

// A media node has headroom for one room. The people of a second one wait in line and enter by themselves
// when the first room is empty. Then the store is away: who is in a room with a cap resumes, and nobody else enters.
func TestLineWithoutHeadroom(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	fleet := storetest.StartAlone(t)
	l := visitor{t: t, c: startCluster(t, devcluster.Options{SFU: 1, Signaling: 2, Redis: fleet.URL, NodeEnv: map[string][]string{
		"sfu-1": {"HOLDFAST_EGRESS_BITS=20000000"},
	}})}
	first, _ := joins[*wire.Joined](l, "signaling-1", "first", "ann")
	second, got := joins[*wire.Waiting](l, "signaling-1", "second", "cy") // which knows of the first room at once
	if got.Reason != "no_capacity" || got.Position != 1 {
		t.Errorf("cy waits %+v", got)
	}
	bob := l.waits("second", "bob")
	at := ""
	eventually(t, leavesWithin, "bob waits", func() error {
		if at = findWaiting(t, l.c, "bob"); at == "" {
			return errStates
		}
		return nil
	})
	if err := say(t.Context(), first.Conn, &wire.Leave{}); err != nil {
		t.Fatal(err)
	}
	awaits[*wire.Joined](second)
	eventually(t, leavesWithin, "bob has media", func() error {
		if stats := bob.Stats(); !stats.Attached || stats.Sent.Packets == 0 {
			return fmt.Errorf("%w: %+v", errStates, stats)
		}
		return nil
	})

	fleet.Processes[0].Kill(t)
	kill(t, l.c, at)
	eventually(t, leavesWithin, "bob resumes", func() error {
		if stats := bob.Stats(); stats.Resumes == 0 || !stats.Attached {
			return fmt.Errorf("%w: %+v", errStates, stats)
		}
		return nil
	})
	other := map[string]string{"signaling-1": "signaling-2", "signaling-2": "signaling-1"}[at]
	if _, m := l.asks(other, "second", "dee"); wire.TypeOf(m) != "error" {
		t.Errorf("dee hears %+v", m)
	}
	fleet.Processes[0].Restart(t)
	joins[*wire.Waiting](l, other, "second", "dee")
}

// What a moderator has set at a door outlives a store that forgets everything: the room's media node hands it back.
func TestDoorSurvivesAnEmptyStore(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	fleet := storetest.StartAlone(t)
	l := visitor{t: t, c: startCluster(t, devcluster.Options{SFU: 1, Signaling: 1, Redis: fleet.URL})}
	grant := access.Everything("ann", "club")
	grant.RoomAdmin = true
	token, err := access.Mint(l.c.Access().Key, l.c.Access().Secret, grant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	host := l.at("signaling-1", &wire.Join{Token: token})
	awaits[*wire.Joined](host)
	stored := func(key, field string) string {
		t.Helper()
		keys, err := fleet.Raw.Keys(t.Context(), "*:room:{club}:"+key).Result()
		if err != nil || len(keys) == 0 {
			return ""
		}
		return fleet.Raw.HGet(t.Context(), keys[0], field).Val()
	}
	written := ""
	eventually(t, leavesWithin, "the room's roster is in the store", func() error {
		if written = stored("roster", "@seq"); written == "" {
			return errStates
		}
		return nil
	})
	one, closed := 1, true
	if err := say(t.Context(), host.Conn, &wire.SetDoor{Cap: &one, Closed: &closed}); err != nil {
		t.Fatal(err)
	}
	awaits[*wire.Door](host)
	eventually(t, leavesWithin, "the media node has heard of it", func() error {
		if stored("roster", "@seq") == written {
			return errStates
		}
		return nil
	})
	if err := fleet.Raw.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, leavesWithin, "the store has the door again", func() error {
		if stored("door", "cap") != "1" || stored("door", "closed") != "1" {
			return errStates
		}
		return nil
	})
	if err := say(t.Context(), host.Conn, &wire.SetDoor{}); err != nil {
		t.Fatal(err)
	}
	if door := awaits[*wire.Door](host); door.Cap == nil || *door.Cap != 1 || !door.Closed || door.Inside != 1 {
		t.Errorf("the door is %+v", door)
	}
}
