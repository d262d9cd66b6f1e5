//go:build long && linux

package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCallsThroughTheRelay is a call of two browsers that reach nothing but the TURN servers of the signaling nodes, one over
// TCP, one over UDP. Its media node is killed, then the signaling node through which a browser is relayed. It prints the gaps.
func TestCallsThroughTheRelay(t *testing.T) {
	t.Parallel()
	needChromium(t, 3)
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t), TURN: true})
	room := roomOn(t, "sfu-1", "relayed")
	began := time.Now()
	people := []*participant{
		join(t, c.URL(), room, "Ada", url.Values{"relay": {"tcp"}}),
		join(t, c.URL(), room, "Alan", url.Values{"relay": {"udp"}}),
	}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	t.Logf("both decode each other %v after the browsers were started", time.Since(began).Round(time.Millisecond))
	for _, p := range people {
		p.isRelayed(t)
		p.mark(t)
		p.watchFrames(t)
	}
	before := []callStats{people[0].mustStats(t), people[1].mustStats(t)}
	kill(t, c, "sfu-1")
	for i, p := range people {
		p.awaitsMove(t, before[i], "restart")
	}
	allDecodeAll(t, time.Minute, people)
	for _, p := range people {
		p.unchanged(t)
		p.isRelayed(t)
		t.Logf("%s: %v without a new frame while its media node died", p.name, p.longestFrameGap(t))
		p.mustEval(t, "(() => { globalThis.__gap = 0; })()", nil)
	}
	for _, name := range []string{"signaling-1", "signaling-2"} {
		kill(t, c, name)
		eventually(t, time.Minute, "all are attached again after the kill of "+name, func() error {
			held, err := askHoldings(t.Context(), c)
			if err != nil {
				return err
			}
			return allAttached(held[room], len(people))
		})
		allDecodeAll(t, time.Minute, people)
		for _, p := range people {
			p.unchanged(t)
			p.isRelayed(t)
			t.Logf("%s: %v without a new frame while %s died", p.name, p.longestFrameGap(t), name)
			p.mustEval(t, "(() => { globalThis.__gap = 0; })()", nil)
		}
		restart(t, c, name)
	}
}

func (p *participant) isRelayed(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, p.name+" is relayed", func() error {
		var relayed bool
		err := p.eval("call.stats().then(({ path }) => path.relayed)", &relayed)
		if err == nil && !relayed {
			err = fmt.Errorf("its path is direct")
		}
		return err
	})
}
