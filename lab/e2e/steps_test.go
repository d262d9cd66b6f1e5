package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/failpoint"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// doomed is the signaling node that dies at the step under test.
const doomed = "signaling-1"

// TestKilledBetweenTheStepsOfAJoin kills the signaling node that places a new
// room: right after the claim, and right after the owner opened the room. Whoever
// joins gets in through the other one, and the room is on one node. The steps of a re-homing are those of
// lab/chaos's death-during-rehoming.
func TestKilledBetweenTheStepsOfAJoin(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, step := range []string{"place.after-claim", "open.after"} {
		t.Run(step, func(t *testing.T) {
			c := startCluster(t, armed(step))
			// One room after the other until the doomed node has placed one. The front gives each new socket to
			// the next node: rooms of two alone would all be placed by the same one.
			var rooms []*people
			for i := 0; i < 4 && !isDead(t, c); i++ {
				g := gather(t, c, fmt.Sprintf("step-%d", i), 2+i%2)
				g.everybodyReceives(t, time.Minute)
				rooms = append(rooms, g)
			}
			diedAtStep(t, c)
			for _, g := range rooms {
				g.onceOn(t, c, 30*time.Second)
			}
			pinsNameOnlyLiveNodes(t, c)
		})
	}
}

// TestRoomOfNobodyIsSwept kills an SFU node and, while it moves the room, the
// only signaling node that had sockets of it; the peers go away. The pin must not
// stay on the dead node.
func TestRoomOfNobodyIsSwept(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-1", "nobody")
	if _, err := joinOnly(t.Context(), c, room); err != nil {
		t.Fatal(err)
	}
	if p := pins(t, c)[room]; p.Node != "sfu-1" {
		t.Fatalf("the pin is %+v, want one on sfu-1", p)
	}
	if err := c.Kill(t.Context(), "sfu-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, "the pin of the room that nobody is in is removed", func() error {
		if p := pins(t, c)[room]; p.Node != "" {
			return fmt.Errorf("still pinned: %+v", p)
		}
		return nil
	})
	pinsNameOnlyLiveNodes(t, c)
}

func armed(step string) devcluster.Options {
	return devcluster.Options{NodeEnv: map[string][]string{doomed: {failpoint.Variable + "=" + step + "=exit"}}}
}

func isDead(t *testing.T, c *devcluster.Cluster) bool {
	t.Helper()
	node, err := c.Node(t.Context(), doomed)
	if err != nil {
		t.Fatal(err)
	}
	return node.State == devcluster.StateDead
}

// diedAtStep waits for the death: a step that nobody reached proves nothing.
func diedAtStep(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	eventually(t, 30*time.Second, doomed+" dies at the step", func() error {
		node, err := c.Node(t.Context(), doomed)
		if err != nil {
			return err
		}
		if node.State != devcluster.StateDead || !strings.Contains(node.Ended, "killed") {
			return fmt.Errorf("it is %s (%s)", node.State, node.Ended)
		}
		return nil
	})
}
