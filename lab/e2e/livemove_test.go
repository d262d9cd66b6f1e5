//go:build long && linux

package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

const (
	movesInCI  = 3
	stillFor   = 2 * time.Second // as long as a move takes
	movedAfter = time.Minute
)

// TestRoomMovesUnderACall moves a room with two Chromium and a Firefox back and forth while both nodes live: nobody's connection is
// restarted, no tile changes, and the first connections end. Only with the tag long: three browsers take both cores for a minute.
// HOLDFAST_MOVES says how often, HOLDFAST_MOVES_FPS how many pictures a second, HOLDFAST_MOVES_FIREFOX=0 that only Chromium does.
func TestRoomMovesUnderACall(t *testing.T) {
	t.Parallel()
	needFirefox(t, 4)
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t)})
	room := roomOn(t, "sfu-1", "live-move")
	query := url.Values{}
	if fps := os.Getenv("HOLDFAST_MOVES_FPS"); fps != "" {
		query.Set("fps", fps)
	}
	address := func(name string) string { return callAddress(c.URL(), room, name, query) }
	people := []*participant{{page: openPage(t, "Clara", address("Clara"))}, {page: openPage(t, "Carl", address("Carl"))}}
	if os.Getenv("HOLDFAST_MOVES_FIREFOX") != "0" {
		people = append(people, &participant{page: openFirefox(t, "Felix", address("Felix"))})
	}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	movesBackAndForth(t, c, room, people, moves(t))
}

// movesBackAndForth moves a room on sfu-1, in which everybody decodes everybody, and prints what was noticed.
func movesBackAndForth(t *testing.T, c *devcluster.Cluster, room string, people []*participant, times int) {
	t.Helper()
	for _, p := range people {
		p.mark(t)
		var pictures int
		p.mustEval(t, "(() => {"+continuityScript+"; return continuity.pictures; })()", &pictures)
		if pictures != len(people)-1 {
			t.Fatalf("%s: %d pictures to watch, want %d", p.name, pictures, len(people)-1)
		}
	}
	held := heldOnce(t, c, room)
	moved, still := make(map[string][]continuity), make(map[string][]continuity)
	for i := range times {
		people[0].mustEval(t, fmt.Sprintf("new Promise((resolve) => setTimeout(() => resolve(0), %d))", stillFor.Milliseconds()), nil) // To compare with.
		for _, p := range people {
			still[p.name] = append(still[p.name], p.continuity(t))
		}
		to := []string{"sfu-2", "sfu-1"}[i%2]
		if err := c.MoveRoom(t.Context(), room, to); err != nil {
			t.Fatal(err)
		}
		for _, p := range people {
			moved[p.name] = append(moved[p.name], p.movesLive(t, to, held.Epoch+uint64(i)+1))
		}
	}
	for _, p := range people {
		p.sameElements(t)
	}
	allDecodeAll(t, time.Minute, people)
	if now := heldOnce(t, c, room); now.Epoch != held.Epoch+uint64(times) {
		t.Errorf("epoch %d became %d in %d moves", held.Epoch, now.Epoch, times)
	}
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		t.Logf("%s, moved: %s", name, distribution(moved[name]))
		t.Logf("%s, still: %s", name, distribution(still[name]))
	}
}

func moves(t *testing.T) int {
	t.Helper()
	text := os.Getenv("HOLDFAST_MOVES")
	if text == "" {
		return movesInCI
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// movesLive waits until the participant has a new connection alone, and returns what was seen of that.
func (p *participant) movesLive(t *testing.T, node string, epoch uint64) continuity {
	t.Helper()
	var last struct {
		Node  string
		Epoch uint64
		How   string
		GapMs float64
		Lost  []any
	}
	eventually(t, movedAfter, fmt.Sprintf("%s moves to %s", p.name, node), func() error {
		var open int
		if err := p.eval("call.stats().then(({ migrations }) => migrations.at(-1) ?? {})", &last); err != nil {
			return err
		}
		if err := p.eval("continuity.open()", &open); err != nil {
			return err
		}
		if last.Epoch != epoch || open != 1 {
			return fmt.Errorf("last %+v, %d connections", last, open)
		}
		return nil
	})
	seen := p.continuity(t)
	seen.told = time.Duration(last.GapMs) * time.Millisecond
	if last.How != "live" || last.Node != node || len(last.Lost) > 0 {
		t.Errorf("%s: moved as %+v, want live to %s", p.name, last, node)
	}
	if len(seen.Tiles) > 0 || seen.Bare > 0 {
		report := t.Errorf
		if p.name == "Felix" {
			report = t.Logf // Firefox sometimes has no picture for a moment after the last track of a stream was replaced.
		}
		report("%s: its tiles were %v, %g times without a picture; want nothing noticed", p.name, seen.Tiles, seen.Bare)
	}
	if len(seen.States) > 0 {
		t.Errorf("%s: the page was %v, want nothing noticed", p.name, seen.States)
	}
	// Two cores with three browsers: what stands still for good is found, not what is late.
	if stood := max(seen.ShownMs, seen.DecodedMs); stood > 5000 || seen.BurstMs > 5000 {
		t.Errorf("%s: a picture stood still for %.0f ms, sound was made up for %.0f ms", p.name, stood, seen.BurstMs)
	}
	return seen
}
