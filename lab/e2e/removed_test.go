package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestWhoIsRemovedStaysOut removes somebody, and then kills the media node and the signaling node that did it. At every
// step each way back is closed to the resume token, and the call goes on.
func TestWhoIsRemovedStaysOut(t *testing.T) {
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-1", "removed")
	call := gather(t, c, room, 2)
	call.everybodyReceives(t, time.Minute)
	eve, left := sitIn(t, c, room, "eve"), sitIn(t, c, room, "lea")
	nodes := []string{"signaling-1", "signaling-2"}

	if err := left.say(t.Context(), &wire.Leave{}); err != nil {
		t.Fatal(err)
	}
	if err := left.endsWith(t.Context(), websocket.StatusNormalClosure); err != nil {
		t.Error(err)
	}
	left.staysOut(t, c, wire.CodeResumeExpired, nodes)

	remove(t, c, "signaling-2", room, "eve")
	if bye, err := awaitMessage[*wire.Bye](t.Context(), eve.attackSocket); err != nil || bye.Code != wire.CodeKicked {
		t.Fatalf("her last word is %+v, %v", bye, err)
	}
	eve.staysOut(t, c, wire.CodeKicked, nodes)

	if err := c.Kill(t.Context(), "sfu-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	call.settledAt(t, 30*time.Second, func(at wire.Placement) bool { return at.Node != "" && at.Node != "sfu-1" })
	eve.staysOut(t, c, wire.CodeKicked, nodes)
	left.staysOut(t, c, wire.CodeResumeExpired, nodes)

	if err := c.Kill(t.Context(), "signaling-2", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eve.staysOut(t, c, wire.CodeKicked, nodes[:1])
	left.staysOut(t, c, wire.CodeResumeExpired, nodes[:1])
	call.everybodyReceives(t, time.Minute)
	if held := call.onceOn(t, c, 30*time.Second); len(held.Peers) != 2 {
		t.Errorf("the room has %+v", held.Peers)
	}
}

// sitter is somebody who has a session and no media.
type sitter struct {
	*attackSocket

	joined  *wire.Joined
	attempt uint64
}

func sitIn(t *testing.T, c *devcluster.Cluster, room, name string) *sitter {
	t.Helper()
	token, err := c.Token(room, name)
	if err != nil {
		t.Fatal(err)
	}
	s := &sitter{attackSocket: socketAt(t, c, "signaling-1"), attempt: 1}
	if err := s.say(t.Context(), &wire.Join{Token: token}); err != nil {
		t.Fatal(err)
	}
	if s.joined, err = awaitMessage[*wire.Joined](t.Context(), s.attackSocket); err != nil {
		t.Fatal(err)
	}
	return s
}

func socketAt(t *testing.T, c *devcluster.Cluster, signaling string) *attackSocket {
	t.Helper()
	node, err := c.Node(t.Context(), signaling)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+node.Addresses[devcluster.AddressHTTP]+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &attackSocket{conn}
}

// staysOut resumes at each signaling node and wants a final refusal, once those that allow a retry are over.
func (s *sitter) staysOut(t *testing.T, c *devcluster.Cluster, want wire.Code, nodes []string) {
	t.Helper()
	for _, node := range nodes {
		eventually(t, 30*time.Second, node+" refuses "+s.joined.Identity, func() error {
			fault := s.resume(t, socketAt(t, c, node))
			if fault != nil && fault.Retryable {
				return fmt.Errorf("%w: %s", errAnswer, fault.Code)
			}
			if fault == nil || fault.Code != want {
				t.Fatalf("%s answers the resume of %s with %+v, want %s", node, s.joined.Identity, fault, want)
			}
			return nil
		})
	}
}

// resume returns what it is refused with, nil if it is let in.
func (s *sitter) resume(t *testing.T, socket *attackSocket) *wire.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.attempt++
	if err := socket.say(ctx, &wire.Resume{Resume: s.joined.Resume, Attempt: s.attempt}); err != nil {
		t.Fatal(err)
	}
	_, frame, err := socket.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.DecodeServer(frame)
	if err != nil {
		t.Fatal(err)
	}
	fault, _ := m.(*wire.Error)
	return fault
}

// remove takes somebody out of a room with a room admin's token.
func remove(t *testing.T, c *devcluster.Cluster, signaling, room, identity string) {
	t.Helper()
	token, err := access.Mint(c.Access().Key, c.Access().Secret, access.Grant{Identity: "host", RoomAdmin: true, Room: ring.RoomID(room)}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.Node(t.Context(), signaling)
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"room": {room}, "identity": {identity}}
	address := "http://" + node.Addresses[devcluster.AddressHTTP] + "/api/v1/peers?" + query.Encode()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	var answer struct {
		Removed []struct{ Peer string } `json:"removed"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK || len(answer.Removed) != 1 {
		t.Fatalf("the removal is answered %s %+v, %v", response.Status, answer, err)
	}
}
