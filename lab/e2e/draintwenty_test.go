//go:build long && linux

package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestDrainOfTwentyRooms drains a node with twenty rooms, of which two Chromium and a Firefox share one, and prints how
// long pictures and sound were not there. Only with the tag long, as TestRoomMovesUnderACall.
func TestDrainOfTwentyRooms(t *testing.T) {
	t.Parallel()
	needFirefox(t, 4)
	const synthetic, each = 19, 2
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t)})
	var calls []*people
	for i := range synthetic {
		calls = append(calls, gather(t, c, roomOn(t, "sfu-1", fmt.Sprintf("twenty-%d", i)), each))
	}
	room := roomOn(t, "sfu-1", "twenty-page")
	address := func(name string) string { return callAddress(c.URL(), room, name, url.Values{"fps": {"30"}}) }
	pages := []*participant{
		{page: openPage(t, "Clara", address("Clara"))},
		{page: openPage(t, "Carl", address("Carl"))},
		{page: openFirefox(t, "Felix", address("Felix"))},
	}
	for _, p := range pages {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, pages)
	allReceive(t, time.Minute, calls)
	held := heldOnce(t, c, room)
	if held.Node != "sfu-1" { // It had less headroom than the others by then.
		if err := c.MoveRoom(t.Context(), room, "sfu-1"); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "the room is moved", func() error {
			all, err := askHoldings(t.Context(), c)
			if err == nil {
				err = allAttached(all[room], len(pages))
			}
			return err
		})
		allDecodeAll(t, time.Minute, pages)
		held = heldOnce(t, c, room)
	}
	for name, one := range allOnce(t, c, calls) {
		if one.Node != "sfu-1" {
			if err := c.MoveRoom(t.Context(), name, "sfu-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, one := range allOnce(t, c, calls) {
		if one.Node != "sfu-1" {
			t.Fatalf("room %s is on %s", name, one.Node)
		}
	}
	for _, p := range pages {
		p.mark(t)
		p.mustEval(t, "(() => {"+continuityScript+"; return continuity.pictures; })()", nil)
	}
	longestGaps(calls)
	pages[0].mustEval(t, "new Promise((resolve) => setTimeout(() => resolve(0), 5000))", nil) // To compare with.
	for _, p := range pages {
		t.Logf("%s, still: %s", p.name, distribution([]continuity{p.continuity(t)}))
	}
	still := longestGaps(calls)
	began := time.Now()
	said, code := holdfast(t, c, "drain", "sfu-1", "--deadline", "60s")
	t.Logf("drained in %v\n%s", time.Since(began).Round(time.Millisecond), said)
	if code != 0 {
		t.Errorf("drain: exit code %d", code)
	}
	endsWell(t, c, "sfu-1")
	allReceive(t, time.Minute, calls)
	to := heldOnce(t, c, room)
	for _, p := range pages {
		seen := p.movesLive(t, to.Node, held.Epoch+1)
		p.sameElements(t)
		t.Logf("%s, drained: %s", p.name, distribution([]continuity{seen}))
	}
	drained := longestGaps(calls)
	if want := synthetic * each * (each - 1) * 2; len(drained) != want || len(still) != want {
		t.Fatalf("%d streams, %d before, want %d", len(drained), len(still), want)
	}
	at := func(gaps []time.Duration, percent int) time.Duration {
		return gaps[(len(gaps)-1)*percent/100].Round(time.Millisecond)
	}
	for _, gaps := range [][]time.Duration{still, drained} {
		t.Logf("%d synthetic streams: longest gap of each, p50 %v, p95 %v, most %v", len(gaps), at(gaps, 50), at(gaps, 95), at(gaps, 100))
	}
}

// longestGaps are sorted, one of each stream since the last time.
func longestGaps(calls []*people) (gaps []time.Duration) {
	for _, g := range calls {
		for _, p := range g.peers {
			for _, stream := range p.Stats().Streams {
				gaps = append(gaps, stream.LongestGap)
			}
			p.ForgetGaps()
		}
	}
	slices.Sort(gaps)
	return gaps
}
