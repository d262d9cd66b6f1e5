package livekit

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// members returns the media nodes of a room that are linked, with how many people each has. The owner comes first.
func (c *cluster) members(t *testing.T, room string) (nodes []string, people map[string]int) {
	t.Helper()
	var said struct {
		HeldBy []struct {
			Members []struct {
				Node   string
				People int
				Link   *struct{ Up bool }
			}
		}
	}
	people = map[string]int{}
	if json.Unmarshal([]byte(c.ask(t, http.MethodGet, "/api/v1/rooms/"+room)), &said) != nil || len(said.HeldBy) != 1 {
		return nil, people
	}
	for _, m := range said.HeldBy[0].Members {
		if m.Link == nil || m.Link.Up {
			nodes, people[m.Node] = append(nodes, m.Node), m.People
		}
	}
	return nodes, people
}

// spread has a second media node carry some of a room's people, and returns both.
func (c *cluster) spread(t *testing.T, room string) (owner, branch string) {
	t.Helper()
	until(t, "the room is on two nodes", func() bool {
		nodes, _ := c.members(t, room)
		if len(nodes) == 2 {
			owner, branch = nodes[0], nodes[1]
			return true
		}
		order := exec.CommandContext(t.Context(), build(t), "spread", room, "--server", "http://"+c.page)
		order.Env = append(os.Environ(), "HOLDFAST_API_KEYS="+key+":"+secret)
		// A node that has just started cannot be a branch yet.
		_ = order.Run()
		return false
	})
	return owner, branch
}

// TestARoomOnTwoNodes: clients of LiveKit get places at every node of a room, also when one of the nodes dies.
func TestARoomOnTwoNodes(t *testing.T) {
	c := newCluster(t)
	ann := join(t, c, "hall", "ann")
	ann.speak(t)
	owner, branch := c.spread(t, "hall")
	bob := join(t, c, "hall", "bob")
	bob.speak(t)
	bob.show(t)
	all := func(when string) {
		t.Helper()
		flows(t, bob, "ann audio")
		flows(t, ann, "bob audio")
		flows(t, ann, "bob video")
		if ann.ended() || bob.ended() {
			t.Fatalf("%s a client was disconnected", when)
		}
	}
	all("at first")
	if _, people := c.members(t, "hall"); people[owner] != 1 || people[branch] != 1 {
		t.Fatalf("%v are at the owner %s and the branch %s", people, owner, branch)
	}
	c.kill(t, branch)
	all("after the branch's death")
	c.startMedia(branch)
	if again, _ := c.spread(t, "hall"); again != owner {
		t.Fatalf("%s has become the owner", again)
	}
	carol := connect(t, c, "hall", "carol") // with a connection for each direction
	carol.speak(t)
	flows(t, carol, "ann audio")
	flows(t, ann, "carol audio")
	if _, people := c.members(t, "hall"); people[branch] != 1 {
		t.Fatalf("%v: the branch %s has nobody", people, branch)
	}
	c.kill(t, owner)
	all("after the owner's death")
	flows(t, carol, "ann audio")
	flows(t, ann, "carol audio")
	if carol.ended() || carol.restarted() > 0 {
		t.Error("who was at the branch had to connect again")
	}
}
