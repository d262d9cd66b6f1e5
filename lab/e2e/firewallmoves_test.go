//go:build long && linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestMovesBehindAFirewall moves a room with two Chromium back and forth while both nodes live, as TestRoomMovesUnderACall. They reach media
// nodes by TCP only, or only through TURN. Then the room's media node is drained.
func TestMovesBehindAFirewall(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	c, cl, pages := clusterBehindTLS(t, turnPort)
	for _, o := range []office{
		noUDP("ip protocol udp drop; tcp dport { " + turnPort + ", " + turnsPort + " } drop"),
		turnAlone(t, c),
		turnOverTLS(t, pages),
	} {
		t.Run(o.name, func(t *testing.T) { o.moves(t, c, cl) })
	}
}

func (o office) moves(t *testing.T, c *devcluster.Cluster, cl clients) {
	o.build(t)
	room := o.room(t)
	people := joinAll(t, cl.base, room, nil, "Clara", "Carl")
	goes := func() {
		t.Helper()
		for _, p := range people {
			p.goes(t, o.path)
		}
	}
	goes()
	movesBackAndForth(t, c, room, people, moves(t))
	goes()
	before := heldOnce(t, c, room)
	for _, p := range people {
		p.continuity(t)
	}
	said, code := holdfast(t, c, "drain", before.Node)
	t.Log(said)
	if code != 0 || !strings.Contains(said, before.Node+" is empty and has ended: 1 room with ") {
		t.Errorf("drain: exit code %d\n%s", code, said)
	}
	endsWell(t, c, before.Node)
	after := heldOnce(t, c, room)
	for _, p := range people {
		t.Logf("%s, drained: %s", p.name, distribution([]continuity{p.movesLive(t, after.Node, before.Epoch+1)}))
		p.sameElements(t)
	}
	allDecodeAll(t, time.Minute, people)
	goes()
	restart(t, c, before.Node, cl.env[before.Node]...)
}
