package signaling

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// replay is one person's session in a room that moves, and every resume token that it ever had.
type replay struct {
	*rig

	signaling [2]*signalingNode
	nodes     [2]*node
	client    *client
	peer      wire.PeerID
	tokens    []string
	attempt   uint64
	over      wire.Code // empty while the session goes on
}

func newReplay(t *testing.T) *replay {
	t.Helper()
	r := &replay{rig: newRig(t), attempt: 1}
	r.nodes = [2]*node{r.node("sfu-1"), r.node("sfu-2")}
	r.placer.set("lobby", r.nodes[0].pin(firstEpoch))
	r.signaling = [2]*signalingNode{r.signalingNode(nil), r.signalingNode(nil)}
	var joined *wire.Joined
	r.client, joined = r.signaling[0].join("lobby", "Eve")
	r.tokens, r.peer = []string{joined.Resume}, joined.Peer
	return r
}

// step does one thing of the order.
func (r *replay) step(name string) {
	r.t.Helper()
	switch name {
	case "leave":
		r.client.say(&wire.Leave{})
		r.client.closed()
		r.over = wire.CodeResumeExpired
	case "removal", "removal of the peer":
		whom := "&identity=eve"
		if name != "removal" {
			whom = "&peer=" + string(r.peer)
		}
		if status, answer := r.signaling[1].remove("room=lobby"+whom, r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)); status != http.StatusOK {
			r.t.Fatalf("the removal is answered %d %+v", status, answer)
		}
		if _, heard := r.client.closed(); !kicked(heard) {
			r.t.Fatalf("who is removed is told %+v", heard)
		}
		r.over = wire.CodeKicked
	case "move":
		to := r.nodes[1].pin(firstEpoch + 1)
		r.placer.set("lobby", to)
		for _, e := range r.signaling {
			e.Hub().Moved(r.t.Context(), "lobby", to)
		}
	case "resume":
		if r.over != "" {
			return
		}
		_ = r.client.conn.CloseNow()
		r.attempt++
		var resumed *wire.Resumed
		r.client, resumed = r.signaling[1].resume(r.tokens[len(r.tokens)-1], r.attempt)
		r.tokens = append(r.tokens, resumed.Resume)
	}
	if r.over == "" {
		return
	}
	for _, token := range r.tokens {
		for _, e := range r.signaling {
			r.attempt++
			e.refused(token, r.attempt, r.over)
		}
	}
}

func kicked(heard []wire.Message) bool {
	if len(heard) == 0 {
		return false
	}
	bye, ok := heard[len(heard)-1].(*wire.Bye)
	return ok && bye.Code == wire.CodeKicked
}

// TestTokensReplayedInAllOrders: once a session is over none of its tokens is good, whatever happened before and happens after.
func TestTokensReplayedInAllOrders(t *testing.T) {
	for _, end := range []string{"leave", "removal", "removal of the peer"} {
		for _, order := range permutations([]string{end, "move", "resume"}) {
			t.Run(strings.ReplaceAll(fmt.Sprint(order), " ", "_"), func(t *testing.T) {
				r := newReplay(t)
				for _, name := range order {
					r.step(name)
				}
			})
		}
	}
}

func permutations(of []string) [][]string {
	if len(of) <= 1 {
		return [][]string{of}
	}
	var all [][]string
	for i, first := range of {
		rest := append(append([]string(nil), of[:i]...), of[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{first}, p...))
		}
	}
	return all
}
