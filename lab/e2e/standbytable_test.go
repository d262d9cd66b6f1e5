//go:build long

package e2e

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// standing is a call of which each person has a standby, as far as one is to be had.
type standing struct {
	*people

	c              *devcluster.Cluster
	owner, standby string
	mend           []string // nodes to start again
}

// anyPlace stands for any node but the owner, where the standby does not count.
const anyPlace = ""

// TestStandbyTable hurts the owner, the standby and others of a call of three synthetic people, and logs the gaps. Nobody may miss anything in the
// end. Who has a standby that can go on makes no offer.
func TestStandbyTable(t *testing.T) {
	t.Parallel()
	c := startCluster(t, devcluster.Options{Standby: true})
	for _, row := range []struct {
		what string
		data int // people with data channels
		do   func(t *testing.T, s *standing) (to string)
		// restarts is how many people make another connection; -1: any number of them.
		restarts int
	}{
		{"the owner is killed", 0, killOwner, 0},
		{"the owner is killed, and then the standby", 0, func(t *testing.T, s *standing) string {
			killOwner(t, s)
			s.isAt(t, s.standby, s.owner)
			return killOwner(t, s.prepared(t, 3))
		}, 0},
		{"the standby is killed, and then the owner", 0, func(t *testing.T, s *standing) string {
			s.kill(t, s.standby)
			return killOwner(t, s.prepared(t, 3))
		}, 0},
		{"both are killed at once", 0, func(t *testing.T, s *standing) string {
			s.kill(t, s.owner, s.standby)
			return anyPlace
		}, 3},
		{"the standby drains, and the owner is killed", 0, func(t *testing.T, s *standing) string {
			drainKept(t, s.c, s.standby)
			s.kill(t, s.owner)
			return anyPlace
		}, 3},
		{"the standby is full by then, and the owner is killed", 0, fillStandby, 3},
		{"the owner drains", 0, func(t *testing.T, s *standing) string {
			drainKept(t, s.c, s.owner)
			return s.standby
		}, 0},
		{"the room is moved", 0, func(t *testing.T, s *standing) string {
			if err := s.c.MoveRoom(t.Context(), s.room, s.standby); err != nil {
				t.Fatal(err)
			}
			return s.standby
		}, 0},
		{"a signaling node is killed with the owner", 0, func(t *testing.T, s *standing) string {
			s.kill(t, "signaling-1", s.owner)
			return s.standby
		}, -1},
		{"the owner is killed, and two have data channels", 2, killOwner, 2},
	} {
		t.Run(row.what, func(t *testing.T) {
			s := stand(t, c, 3, row.data)
			began := s.connections()
			owner, to := s.owner, ""
			for _, p := range s.peers {
				p.ForgetGaps()
			}
			to = row.do(t, s)
			s.isAt(t, to, owner)
			s.everybodyReceives(t, time.Minute)
			restarted := 0
			for i, n := range s.connections() {
				if n > began[i] {
					restarted++
				}
				if last := i >= 3-row.data; row.data > 0 && last != (n > began[i]) {
					t.Errorf("person-%d made %d connections more", i, n-began[i])
				}
			}
			if row.restarts >= 0 && restarted != row.restarts {
				t.Errorf("%d of 3 made another connection, want %d", restarted, row.restarts)
			}
			sound, picture := s.gaps()
			t.Logf("%s: %d of 3 without an offer; longest gap of sound %d ms, of pictures %d ms", row.what, 3-restarted, sound.Milliseconds(), picture.Milliseconds())
		})
	}
}

// stand begins a call, of which the last people have data channels.
func stand(t *testing.T, c *devcluster.Cluster, n, data int) *standing {
	t.Helper()
	room := fmt.Sprintf("standing-%d", time.Now().UnixNano())
	g := gather(t, c, room, n-data)
	if data > 0 {
		g.peers = append(g.peers, gatherAs(t, c, room, data, peer.Options{Data: true}).peers...)
	}
	s := &standing{people: g, c: c}
	t.Cleanup(func() { s.mended(t) })
	s.everybodyReceives(t, time.Minute)
	return s.prepared(t, n-data)
}

// prepared waits until a node stands by for n connections.
func (s *standing) prepared(t *testing.T, n int) *standing {
	t.Helper()
	eventually(t, time.Minute, "a node stands by", func() error {
		all, err := askHoldings(t.Context(), s.c)
		if err != nil {
			return err
		}
		held := all[s.room]
		if len(held) != 1 || held[0].Standby.Connections != n || slices.Contains(s.mend, held[0].Node) || slices.Contains(s.mend, held[0].Standby.Node) {
			return fmt.Errorf("held: %+v, want a standby for %d", held, n)
		}
		s.owner, s.standby = held[0].Node, held[0].Standby.Node
		return nil
	})
	return s
}

// isAt waits until the room is held by one node, and everybody knows it.
func (s *standing) isAt(t *testing.T, node, not string) {
	t.Helper()
	s.leavesNode(t, not)
	now := s.onceOn(t, s.c)
	if node != anyPlace && now.Node != node {
		t.Errorf("the room is on %s, want %s", now.Node, node)
	}
	s.leavesNode(t, not)
}

func (s *standing) kill(t *testing.T, nodes ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, node := range nodes {
		if err := s.c.Kill(ctx, node, syscall.SIGKILL); err != nil {
			t.Errorf("kill %s: %v", node, err)
		}
		s.mend = append(s.mend, node)
	}
}

func killOwner(t *testing.T, s *standing) string {
	t.Helper()
	s.kill(t, s.owner)
	return s.standby
}

func (s *standing) restart(t *testing.T, node string, env ...string) {
	t.Helper()
	restart(t, s.c, node, env...)
	s.mend = slices.DeleteFunc(s.mend, func(name string) bool { return name == node })
}

// fillStandby moves another room to the standby before it kills the owner. A room of three sends 700 kbit/s, and is expected to send more at first.
func fillStandby(t *testing.T, s *standing) string {
	t.Helper()
	narrow := s.standby
	s.kill(t, narrow)
	third := s.prepared(t, 3).standby
	s.restart(t, narrow, "HOLDFAST_EGRESS_BITS=1000000")
	t.Cleanup(func() { s.kill(t, narrow) })
	s.kill(t, third)
	if s.prepared(t, 3); s.standby != narrow {
		t.Fatalf("%s stands by, want %s", s.standby, narrow)
	}
	s.restart(t, third)
	other := gather(t, s.c, s.room+"-other", 3)
	other.everybodyReceives(t, time.Minute)
	eventually(t, time.Minute, "another room fills the standby", func() error { return s.c.MoveRoom(t.Context(), other.room, narrow) })
	s.kill(t, s.owner)
	return third
}

// mended has all nodes run and take rooms again.
func (s *standing) mended(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, node := range s.mend {
		if _, err := s.c.StartNode(ctx, node); err != nil {
			t.Errorf("start %s: %v", node, err)
		}
	}
}

// drainKept drains a node that goes on to run, until the test ends.
func drainKept(t *testing.T, c *devcluster.Cluster, node string) {
	t.Helper()
	if err := c.DrainAt(t.Context(), c.URL(), "POST", node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := c.DrainAt(ctx, c.URL(), "DELETE", node); err != nil {
			t.Errorf("end the drain of %s: %v", node, err)
		}
	})
}

func (g *people) connections() []int {
	var all []int
	for _, p := range g.peers {
		all = append(all, p.Totals().Connections)
	}
	return all
}

// gaps are the longest of anybody.
func (g *people) gaps() (sound, picture time.Duration) {
	for _, p := range g.peers {
		for id, s := range p.Stats().Streams {
			if id.Source == wire.SourceMicrophone {
				sound = max(sound, s.LongestGap)
			} else {
				picture = max(picture, s.LongestGap)
			}
		}
	}
	return sound, picture
}
