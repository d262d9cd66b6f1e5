//go:build linux

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestStandby is a call between Firefox and Chromium whose media node stops. Another node, a process of its own, goes on
// with both connections: the same RTCPeerConnections, and nobody tells the clients anything. HOLDFAST_STANDBY_ROUNDS says
// how often, and it prints what was noticed.
func TestStandby(t *testing.T) {
	t.Parallel()
	needFirefox(t, atOnce)
	env := []string{"HOLDFAST_LOG_LEVEL=debug"}
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t), Standby: true, NodeEnv: map[string][]string{"sfu-1": env, "sfu-2": env, "sfu-3": env}})
	b := &mixed{
		c:      c,
		fox:    &participant{page: openFirefox(t, "Felix", c.URL()+"?name=Felix")},
		chrome: &participant{page: openPage(t, "Clara", c.URL()+"?name=Clara")},
	}
	rounds, _ := strconv.Atoi(os.Getenv("HOLDFAST_STANDBY_ROUNDS"))
	seen := map[string][]continuity{}
	for i := range max(rounds, 1) {
		for _, how := range []string{"drained", "killed", "moved", "still"} {
			t.Run(fmt.Sprintf("%s %d", how, i+1), func(t *testing.T) {
				b.standsBy(t, how, env, seen)
			})
		}
	}
	for what, all := range seen {
		t.Logf("%s: %s", what, distribution(all))
	}
}

// standsBy begins a call on a node that is killed, drained, left by its room, or goes on. Nobody must notice. After a kill another node stands by, and
// the next kill is not noticed either. In the end all nodes are back.
func (b *mixed) standsBy(t *testing.T, how string, env []string, seen map[string][]continuity) {
	t.Helper()
	b.call(t, "sfu-1", url.Values{"fps": {"30"}}, nil)
	b.goesOn(t, how, env, seen)
	if how == "killed" {
		b.goesOn(t, "killed again", env, seen)
	}
}

// goesOn does something to the node of the call, once another one stands by. Nobody must notice.
func (b *mixed) goesOn(t *testing.T, how string, env []string, seen map[string][]continuity) {
	t.Helper()
	standby := b.awaitsStandby(t)
	held := heldOnce(t, b.c, b.room)
	before := map[*participant]callStats{}
	for _, p := range b.people() {
		p.mark(t)
		p.mustEval(t, "(() => {"+continuityScript+"; return continuity.pictures; })()", nil)
		before[p] = p.mustStats(t)
		p.continuity(t)
	}
	switch how {
	case "killed", "killed again":
		kill(t, b.c, held.Node)
		// The node is back before the next one is killed, and the ring says that the room belongs there. But another one stands by.
		defer restart(t, b.c, held.Node, env...)
	case "moved":
		if err := b.c.MoveRoom(t.Context(), b.room, standby); err != nil {
			t.Fatal(err)
		}
	case "drained":
		said, code := holdfast(t, b.c, "drain", held.Node)
		if t.Log(said); code != 0 {
			t.Fatalf("drain: exit code %d", code)
		}
		defer restart(t, b.c, held.Node, env...)
	}
	for _, p := range b.people() {
		if how != "still" {
			p.isAt(t, held.Epoch+1)
		}
		// As long as a restart takes, so that one would be seen.
		p.mustEval(t, "new Promise((resolve) => setTimeout(() => resolve(0), 3000))", nil)
		noticed := p.continuity(t)
		seen[p.name+", "+how] = append(seen[p.name+", "+how], noticed)
		after := p.mustStats(t)
		if after.PcID != before[p].PcID || after.OffersSent != before[p].OffersSent || len(after.Migrations) != len(before[p].Migrations) {
			t.Errorf("%s, %s: connection %d became %d, offers %d became %d, migrations %v: want nothing noticed",
				p.name, how, before[p].PcID, after.PcID, before[p].OffersSent, after.OffersSent, after.Migrations)
		}
		if now := heldOnce(t, b.c, b.room); how != "still" && (after.Node != now.Node || after.Epoch != now.Epoch) {
			t.Errorf("%s reports of %s at epoch %d, but its media is at %s at epoch %d", p.name, after.Node, after.Epoch, now.Node, now.Epoch)
		}
		p.unchanged(t)
		t.Logf("%s %s: pictures stood for %.0f ms, sound was made up for %.0f ms", p.name, how, max(noticed.ShownMs, noticed.DecodedMs), noticed.ConcealedMs)
	}
	allDecodeAll(t, 30*time.Second, b.people())
	if now := heldOnce(t, b.c, b.room); how != "still" && (now.Node != standby || now.Epoch != held.Epoch+1) {
		t.Errorf("%s: the room is on %s at epoch %d, want %s at %d", how, now.Node, now.Epoch, standby, held.Epoch+1)
	}
}

// isAt waits until the page has heard of an epoch.
func (p *participant) isAt(t *testing.T, epoch uint64) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%s hears of epoch %d", p.name, epoch), func() error {
		var now uint64
		if err := p.eval("call.epoch", &now); err != nil {
			return err
		}
		if now != epoch {
			return fmt.Errorf("it is at epoch %d", now)
		}
		return nil
	})
}

// awaitsStandby returns the node that can go on with both connections.
func (b *mixed) awaitsStandby(t *testing.T) (standby string) {
	t.Helper()
	eventually(t, time.Minute, "a node stands by for both", func() error {
		said, code := holdfast(t, b.c, "explain", b.room)
		node, _, found := strings.Cut(said, fmt.Sprintf(" stands by for %d connections.", len(b.people())))
		if code != 0 || !found {
			return fmt.Errorf("explain: exit code %d\n%s", code, said)
		}
		standby = node[strings.LastIndex(node, " ")+1:]
		return nil
	})
	return standby
}
