//go:build linux

package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// letIn and resumed are no refusals.
	letIn   wire.Code = "joined"
	resumed wire.Code = "resumed"

	lateKey = "late" // the API key that is withdrawn
	// A token minted to end soon-leeway from now is refused after soon.
	leeway, soon = 30 * time.Second, 20 * time.Second
)

// replay is two nodes of each role, of which the second ones and the room's media node are to die.
type replay struct {
	*stage

	file   string // of API keys
	urls   map[string]string
	doomed string // the media node that has not the call
	room   string // of everybody here, on that node
}

func newReplay(t *testing.T) *replay {
	t.Helper()
	r := &replay{file: filepath.Join(t.TempDir(), "keys"), urls: map[string]string{}}
	late := lateKey + ":" + strings.Repeat("l", 32)
	r.stage = newStageOf(t, 2, func(c *devcluster.Cluster) {
		r.write(t, c.Access().Key+":"+c.Access().Secret, late)
		for _, name := range []string{"signaling-1", "signaling-2"} { // Only now the supervisor's own key is known.
			if err := c.Kill(t.Context(), name, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			node, err := c.StartNode(t.Context(), name, "HOLDFAST_API_KEYS_FILE="+r.file, fmt.Sprint("HOLDFAST_RESUME_GRACE=", leeway))
			if err != nil {
				t.Fatal(err)
			}
			r.urls[name] = "http://" + node.Addresses[child.AddressHTTP]
		}
	})
	if err := r.stage.keys.Replace(r.cluster.Access().Key + ":" + r.cluster.Access().Secret + "," + late); err != nil {
		t.Fatal(err)
	}
	r.doomed = "sfu-1"
	for _, held := range r.rooms() {
		if held.Room == bystanderRoom && held.Node == r.doomed {
			r.doomed = "sfu-2"
		}
	}
	nodes := ring.New([]ring.NodeID{"sfu-1", "sfu-2"})
	for i := 0; r.room == ""; i++ {
		room := fmt.Sprint("replay-", i)
		if owner, _ := nodes.Owner(ring.RoomID(room)); string(owner) == r.doomed {
			r.room = room
		}
	}
	return r
}

func (r *replay) write(t *testing.T, keys ...string) {
	t.Helper()
	if err := os.WriteFile(r.file, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holder is somebody with both kinds of token, and a session.
type holder struct {
	*replay

	name, access, resume string
	attempt              uint64
	conn                 *websocket.Conn
}

// enter lets somebody in at signaling-2, with an access token of a key that lasts for so long.
func (r *replay) enter(name, key string, lasts time.Duration) *holder {
	r.t.Helper()
	token, err := r.keys.Mint(key, access.Everything(name, ring.RoomID(r.room)), lasts)
	if err != nil {
		r.t.Fatal(err)
	}
	h := &holder{replay: r, name: name, access: token, attempt: 1}
	h.want("signaling-2", &wire.Join{Token: token}, letIn)
	return h
}

// want says something first at a signaling node and wants that answer, once those that allow a retry are over.
func (h *holder) want(node string, first wire.Message, want wire.Code) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	h.eventually(node+" answers "+h.name, func() error {
		conn, answer, err := say(ctx, h.urls[node], first)
		if err != nil {
			return err
		}
		got := wire.Code("nonsense")
		switch m := answer.(type) {
		case *wire.Joined:
			got = letIn
			h.take(conn, m.Room, m.Resume)
		case *wire.Resumed:
			got = resumed
			h.take(conn, "", m.Resume)
		case *wire.Error:
			_ = conn.CloseNow()
			if m.Retryable {
				return fmt.Errorf("%w: %s", errLater, m.Code)
			}
			got = m.Code
		}
		if got != want {
			h.t.Errorf("%s answers the %T of %s with %s, want %s", node, first, h.name, got, want)
		}
		return nil
	})
}

var errLater = errors.New("try again")

func (h *holder) take(conn *websocket.Conn, room ring.RoomID, resume string) {
	if room != "" && string(room) != h.room {
		h.t.Errorf("%s is let into room %s", h.name, room)
	}
	if h.conn == nil {
		h.t.Cleanup(func() { _ = h.conn.CloseNow() })
	}
	h.conn, h.resume = conn, resume
}

// again uses both tokens at some nodes.
func (h *holder) again(resume, join wire.Code, nodes ...string) {
	h.t.Helper()
	for _, node := range nodes {
		h.attempt++
		h.want(node, &wire.Resume{Resume: h.resume, Attempt: h.attempt}, resume)
		if join != letIn { // It would begin another session.
			h.want(node, &wire.Join{Token: h.access}, join)
		}
	}
}

// leave ends the session for good.
func (h *holder) leave() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	if err := write(ctx, h.conn, &wire.Leave{}); err != nil {
		h.t.Fatal(err)
	}
	if _, err := lastWord(ctx, h.conn); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		h.t.Errorf("a leave ends with %v", err)
	}
}

// remove has a moderator take somebody out, as `holdfast remove` does.
func (h *holder) remove() {
	h.t.Helper()
	token, err := h.keys.Mint("", access.Grant{Identity: "host", RoomAdmin: true, Room: ring.RoomID(h.room)}, time.Minute)
	if err != nil {
		h.t.Fatal(err)
	}
	binary, err := devcluster.Binary()
	if err != nil {
		h.t.Fatal(err)
	}
	said, err := exec.CommandContext(h.t.Context(), binary, "remove", h.room, h.name, "--server", h.urls["signaling-2"], "--token", token).CombinedOutput() //nolint:gosec // our own binary
	if err != nil {
		h.t.Fatalf("%v: %s", err, said)
	}
}

// bothAtOnce resumes from two sockets with one token: one of them goes on, the other is told why not.
func (h *holder) bothAtOnce() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	ends := make(chan wire.Code, 2)
	h.attempt++
	var conns [2]*websocket.Conn
	var answers [2]wire.Message
	began := make(chan error, 2)
	for i := range conns {
		go func() {
			var err error
			conns[i], answers[i], err = say(ctx, h.urls[[]string{"signaling-1", "signaling-2"}[i]], &wire.Resume{Resume: h.resume, Attempt: h.attempt})
			began <- err
		}()
	}
	for range conns {
		if err := <-began; err != nil {
			h.t.Fatal(err)
		}
	}
	for i, conn := range conns {
		go func() {
			last := answers[i]
			if more, _ := lastWord(ctx, conn); more != nil {
				last = more
			}
			switch m := last.(type) {
			case *wire.Bye:
				ends <- m.Code
			case *wire.Error:
				ends <- m.Code
			default:
				ends <- resumed
			}
		}()
	}
	if code := <-ends; code != wire.CodeSuperseded {
		h.t.Errorf("of two sockets with one token the first ends with %s, want %s", code, wire.CodeSuperseded)
	}
	select {
	case code := <-ends:
		h.t.Errorf("of two sockets with one token the other ends, too, with %s", code)
		ends <- code
	case <-time.After(time.Second):
	}
	for i, conn := range conns {
		_ = conn.CloseNow()
		if m, ok := answers[i].(*wire.Resumed); ok {
			h.resume = m.Resume
		}
	}
	<-ends
}

// TestTokensReplayed uses the access and the resume token of people whose time is over, and of those whose is not: in another room,
// at another signaling node, from two sockets, and after the death of the media node and then of the signaling node. A leave or
// a removal is no ban: a good access token begins another session (docs/PROTOCOL.md).
func TestTokensReplayed(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newReplay(t)
	survivor, both := []string{"signaling-1"}, []string{"signaling-1", "signaling-2"}
	expiring := r.enter("expiring", "", soon-leeway)
	withdrawn := r.enter("withdrawn", lateKey, time.Hour)
	left, removed, staying := r.enter("left", "", time.Hour), r.enter("removed", "", time.Hour), r.enter("staying", "", time.Hour)
	left.leave()
	removed.remove()
	r.write(t, r.cluster.Access().Key+":"+r.cluster.Access().Secret)
	expired := time.After(soon + 2*time.Second) // and grace counts in whole seconds

	staying.want("signaling-1", &wire.Join{Token: staying.access, Room: "another"}, wire.CodeNotAllowed)
	staying.want("signaling-1", &wire.Resume{Resume: strings.Replace(staying.resume, ".", ".e", 1), Attempt: 9}, wire.CodeBadToken)
	staying.again(resumed, letIn, both...) // wherever it comes from; the socket before is superseded
	staying.bothAtOnce()
	for _, name := range both {
		r.eventually(name+" has read the keys", func() error {
			said, err := r.cluster.Logs(t.Context(), name)
			if err == nil && !strings.Contains(said, "keys replaced") {
				err = errLater
			}
			return err
		})
	}
	<-expired
	check := func(nodes []string) {
		t.Helper()
		left.again(wire.CodeResumeExpired, letIn, nodes...)
		removed.again(wire.CodeKicked, letIn, nodes...)
		withdrawn.again(wire.CodeResumeExpired, wire.CodeBadToken, nodes...)
		expiring.again(wire.CodeResumeExpired, wire.CodeTokenExpired, nodes...)
		staying.again(resumed, letIn, nodes...)
	}
	check(both)
	for _, name := range []string{r.doomed, "signaling-2"} {
		if err := r.cluster.Kill(t.Context(), name, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		check(survivor)
	}
	for _, held := range r.rooms() { // Whose sockets died with signaling-2 keep their places for half a minute.
		for _, p := range held.Peers {
			if p.Identity == left.name || p.Identity == removed.name {
				t.Errorf("at the end %s has %+v", held.Node, held.Peers)
			}
		}
	}
	r.unharmed()
}
