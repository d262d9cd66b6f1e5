package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var errStates = errors.New("not in these states")

// connect makes a user online, in no room. Until somebody reads, the socket answers no ping.
func connect(ctx context.Context, c *devcluster.Cluster, node, user string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n, err := c.Node(ctx, node)
	if err != nil {
		return nil, err
	}
	return connectAt(ctx, c, "ws://"+n.Addresses[child.AddressHTTP]+"/ws", user)
}

func connectAt(ctx context.Context, c *devcluster.Cluster, url, user string) (*websocket.Conn, error) {
	token, err := access.Mint(c.Access().Key, c.Access().Secret, access.Grant{Identity: user, CanWatch: true, CanMessage: true}, time.Hour)
	if err != nil {
		return nil, err
	}
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(wire.MaxMessageBytes)
	err = say(ctx, conn, &wire.Connect{Token: token})
	if err == nil {
		_, _, err = conn.Read(ctx)
	}
	if err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

func say(ctx context.Context, conn *websocket.Conn, m wire.Message) error {
	frame, err := wire.Encode(m)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, frame)
}

// contact is a user who stays online, and may watch others: when its socket ends it connects to the next signaling node, as the
// library does.
type contact struct {
	user    string
	watches wire.List[string]

	mu    sync.Mutex          // guards the fields below
	heard map[string][]string // the states of each watched user, one after the other
	early string              // a user who was said to be offline within a TTL of when it was last seen
}

const (
	presenceTTL = 15 * time.Second
	// leavesWithin is how long a slow machine may take over a TTL, sweeps and the restarts of killed sweepers.
	leavesWithin = 4 * time.Minute
)

func (p *contact) stay(ctx context.Context, c *devcluster.Cluster, node int) {
	for ctx.Err() == nil {
		conn, err := connect(ctx, c, fmt.Sprint("signaling-", node), p.user)
		if err == nil {
			p.listen(ctx, conn)
			_ = conn.CloseNow()
		}
		node = node%3 + 1
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// listen returns when the socket ends.
func (p *contact) listen(ctx context.Context, conn *websocket.Conn) {
	if say(ctx, conn, &wire.Watch{Users: p.watches}) != nil {
		return
	}
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		m, err := wire.DecodeServer(frame)
		if list, ok := m.(*wire.Presence); ok && err == nil {
			p.note(list.Users)
		}
	}
}

func (p *contact) note(users []wire.UserPresence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range users {
		if said := p.heard[u.User]; len(said) == 0 || said[len(said)-1] != u.State {
			p.heard[u.User] = append(said, u.State)
			if u.State == "offline" && time.Since(time.UnixMilli(u.LastSeen)) < presenceTTL {
				p.early = u.User
			}
		}
	}
}

// said is all that was heard of a user. The store does not know anything at first.
func (p *contact) said(user string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimPrefix(strings.Join(p.heard[user], " "), "unknown ")
}

// says checks what was heard of each user: "online offline".
func (p *contact) says(want map[string]string) error {
	for user, states := range want {
		if got := p.said(user); got != states {
			return fmt.Errorf("%w: of %s was heard %q, want %q", errStates, user, got, states)
		}
	}
	return nil
}

// leavers is a cluster of three signaling nodes that are killed by their sweeps.
type leavers struct {
	t *testing.T
	*devcluster.Cluster

	watcher *contact
}

// dies kills a node the first time that its sweep took somebody out, in the middle of the shards or after them.
const dies = failpoint.Variable + "=sweep.between=exit,sweep.evicted=exit"

func newLeavers(t *testing.T, redis string) *leavers {
	t.Helper()
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 3, Redis: redis, NodeEnv: map[string][]string{
		"signaling-3": {failpoint.Variable + "=sweep.before=hang"},
	}})
	l := &leavers{t: t, Cluster: c}
	l.watcher = &contact{user: "watcher", watches: wire.List[string]{"gone", "half", "mover", "quits", "tabs"}, heard: make(map[string][]string)}
	return l
}

// stay keeps contacts online until the test ends.
func (l *leavers) stay(node int, all ...*contact) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var contacts sync.WaitGroup
	for _, p := range all {
		contacts.Go(func() { p.stay(ctx, l.Cluster, node) })
	}
	l.t.Cleanup(func() { cancel(); contacts.Wait() })
}

// once connects a user who does not come back.
func (l *leavers) once(node int, user string) *websocket.Conn {
	l.t.Helper()
	conn, err := connect(l.t.Context(), l.Cluster, fmt.Sprint("signaling-", node), user)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.CloseRead(context.WithoutCancel(l.t.Context()))
	return conn
}

// crowd has 500 users come: a third leaves, a third is lost, and a third stays at signaling-1.
func (l *leavers) crowd() {
	l.t.Helper()
	var all sync.WaitGroup
	for from := range 10 {
		all.Go(func() {
			for i := from * 50; i < from*50+50; i++ {
				conn, err := connect(l.t.Context(), l.Cluster, fmt.Sprint("signaling-", max(1, i%3)), fmt.Sprint("crowd-", i))
				switch {
				case err != nil:
					l.t.Error(err)
				case i%3 == 0:
					_ = say(l.t.Context(), conn, &wire.Leave{})
				case i%3 == 2:
					_ = conn.CloseNow()
				}
			}
		})
	}
	all.Wait()
}

// revive starts nodes again that killed themselves, to die at the steps at which nobody died yet. It returns those.
func (l *leavers) revive() (steps []string, err error) {
	status, err := l.Status(l.t.Context())
	if err != nil {
		return nil, err
	}
	var logs strings.Builder
	for _, n := range status.Nodes {
		text, err := l.Logs(l.t.Context(), n.Name)
		if err != nil {
			return nil, err
		}
		logs.WriteString(text)
	}
	for _, step := range []string{"sweep.between", "sweep.evicted"} {
		if !strings.Contains(logs.String(), "failpoint "+step+": exit") {
			steps = append(steps, step)
		}
	}
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleSignaling && n.State == devcluster.StateDead {
			env := failpoint.Variable + "="
			for _, step := range steps {
				env += step + "=exit,"
			}
			_, _ = l.StartNode(l.t.Context(), n.Name, env) // It may die again meanwhile.
		}
	}
	return steps, nil
}

// present lists who is online, "user connections".
func (l *leavers) present() (list []string, err error) {
	for page := "0"; page != ""; {
		var answer struct {
			Users []struct {
				User        string
				Connections int
			}
			Next string
		}
		if err := l.Admin(l.t.Context(), "presence?page="+page, &answer); err != nil {
			return nil, err
		}
		for _, u := range answer.Users {
			list = append(list, fmt.Sprint(u.User, " ", u.Connections))
		}
		page = answer.Next
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// TestLeavesAreAnnouncedOnce kills a client, one tab of five, a crowd, and each signaling node one after the other: one that is about
// to sweep, then those that swept half of the shards, or all. Exactly those who are gone leave, once each, not before a TTL, and leave
// no ghost. Then the store is away for longer than a TTL and comes back empty: nobody leaves.
func TestLeavesAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		takes(t, 1)
		l := newLeavers(t, "")
		l.leave()
		l.noGhosts()
		l.heard("")
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		takes(t, 1)
		fleet := storetest.StartAlone(t)
		l := newLeavers(t, fleet.URL)
		l.leave()
		l.noGhosts()
		l.losesTheStore(fleet)
	})
}

// leave returns when those who are gone were heard to leave.
func (l *leavers) leave() {
	t := l.t
	t.Helper()
	l.once(1, "gone")
	l.once(1, "half")
	quits, tab := l.once(2, "quits"), l.once(2, "tabs")
	l.stay(1, &contact{user: "mover"})
	l.stay(2, &contact{user: "half"}, &contact{user: "tabs"}, &contact{user: "tabs"}, &contact{user: "tabs"}, &contact{user: "tabs"})
	l.stay(3, l.watcher)
	l.crowd()
	eventually(t, leavesWithin, "all are online", func() error {
		return l.watcher.says(map[string]string{"gone": "online", "half": "online", "mover": "online", "quits": "online", "tabs": "online"})
	})
	began := time.Now()
	_, _ = quits.CloseNow(), tab.CloseNow()
	for _, node := range []string{"signaling-1", "signaling-3", "signaling-2"} {
		kill(t, l.Cluster, node)
		_, _ = l.StartNode(t.Context(), node, dies)
	}
	eventually(t, leavesWithin, "those who are gone leave, and sweepers die at each step", func() error {
		if steps, err := l.revive(); err != nil || len(steps) > 0 {
			return fmt.Errorf("%w: nobody died at %v: %v", errStates, steps, err) //nolint:errorlint // one of them is enough
		}
		return l.watcher.says(map[string]string{"gone": "online offline", "quits": "online offline"})
	})
	t.Logf("the leaves took %v", time.Since(began))
	l.heard("")
}

// heard checks that nobody else was heard to leave, and nobody twice.
func (l *leavers) heard(then string) {
	l.t.Helper()
	l.watcher.mu.Lock()
	early := l.watcher.early
	l.watcher.mu.Unlock()
	if early != "" {
		l.t.Errorf("%s was said to be offline within %v of its last heartbeat", early, presenceTTL)
	}
	stays := "online" + then
	if err := l.watcher.says(map[string]string{"half": stays, "mover": stays, "tabs": stays}); err != nil {
		l.t.Error(err)
	}
	for _, user := range []string{"gone", "quits"} {
		if said := l.watcher.said(user); !strings.HasPrefix(said, "online offline") || strings.Count(said, "online") > 1 {
			l.t.Errorf("of %s was heard %s", user, said)
		}
	}
}

// noGhosts waits until the leases of the dead nodes have lapsed.
func (l *leavers) noGhosts() {
	l.t.Helper()
	eventually(l.t, leavesWithin, "exactly those are online who are here", func() error {
		_, _ = l.revive()
		list, err := l.present()
		const want = "[half 1 mover 1 tabs 4 watcher 1]"
		if got := fmt.Sprint(list); err == nil && got != want {
			err = fmt.Errorf("%w: online are %s, want %s", errStates, got, want)
		}
		return err
	})
}

// losesTheStore kills it for longer than a TTL. Nothing is known then, and everybody is back within a heartbeat or two.
func (l *leavers) losesTheStore(fleet storetest.Fleet) {
	t := l.t
	t.Helper()
	const never = "online unknown"
	fleet.Processes[0].Kill(t)
	eventually(t, leavesWithin, "nothing is known of anybody", func() error {
		return l.watcher.says(map[string]string{"half": never, "mover": never, "tabs": never})
	})
	fleet.Processes[0].Restart(t)
	back := time.Now()
	eventually(t, leavesWithin, "all are back", func() error {
		return l.watcher.says(map[string]string{"half": never + " online", "mover": never + " online", "tabs": never + " online"})
	})
	t.Logf("all are back %v after the store", time.Since(back)) // heartbeats come every 5 s
	l.noGhosts()
	l.heard(" unknown online")
}
