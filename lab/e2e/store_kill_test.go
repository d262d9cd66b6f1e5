package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The store's kill: how many rooms of two talk, how many people wait for a new room each, how long the same run is watched
// before anything is done to it, and how soon after the store's first answer to PING people must be in.
const (
	storeRooms  = 50
	storeWaits  = 10
	storeQuiet  = 4 * time.Second
	storeReturn = time.Second
)

// TestAHundredPeopleDoNotNeedTheStore kills the store under a hundred synthetic people and two browsers: media goes
// on, people join the rooms that are known, new rooms are refused for now, and those who wait, the client library in a
// page among them, are in within a second of its return, without anybody doing anything. What a busy machine does to
// pauses and joins is measured in the same run before the fault, and allowed again.
func TestAHundredPeopleDoNotNeedTheStore(t *testing.T) {
	needChromium(t)
	fleet := storetest.StartAlone(t)
	c := onStore(t, fleet)
	pair := []*participant{join(t, c.URL(), "pair", "Ada", nil), join(t, c.URL(), "pair", "Alan", nil)}
	g := startThrong(t, c, storeRooms)
	for _, p := range pair {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, pair)
	g.settles(t)
	rooms := holdings(t, c)
	k := keepRooms(t, c, rooms)
	call := someCall(t, rooms)
	for _, p := range pair {
		p.mark(t)
	}

	calm := beginLook(t, pair)
	usual := slowest(allIn(t, waitAll(t, c, "usual", storeWaits))).Sub(calm.began)
	g.until(t, calm.began.Add(storeQuiet))
	noise := calm.end(t, g)
	bound := noise.plus(time.Second)

	fault := beginLook(t, pair)
	killed := time.Now()
	fleet.Processes[0].Kill(t)
	waiting := waitAll(t, c, "waited-for", storeWaits)
	waitInPage(t, pair[0], c, "waited-for-by-a-page")
	refusedClearly(t, c)
	known, at, err := joinAs(t.Context(), c, call.Room, "late")
	if err != nil || string(at.Node) != call.Node {
		t.Fatalf("a join of %s, which is on %s, was answered %+v, %v", call.Room, call.Node, at, err)
	}
	stays(t, known)
	refusedAgain(t, 3, waiting)
	eventually(t, 30*time.Second, "the library is refused for now", func() error {
		if refused, in := waitedInPage(t, pair[0]); refused < 3 || !in.IsZero() {
			return fmt.Errorf("refused %d times, in: %v", refused, in)
		}
		return nil
	})
	g.until(t, killed.Add(max(storeQuiet, 2*bound.stream)))

	fleet.Processes[0].Restart(t)
	back := time.Now()
	first := firstIn(t, c)
	ins := allIn(t, waiting)
	var shown time.Time
	eventually(t, 30*time.Second, "the library gets in", func() error {
		if _, shown = waitedInPage(t, pair[0]); shown.IsZero() {
			return errors.New("it waits")
		}
		return nil
	})
	g.until(t, time.Now())
	seen := fault.end(t, g)
	t.Logf("away for %v; longest pauses %v, before the fault %v", back.Sub(killed).Round(time.Millisecond), seen, noise)
	inAfter(t, back, usual, first, append(ins, shown))
	seen.within(t, bound)
	g.undisturbed(t, calm.began)
	undisturbed(t, c, rooms["pair"][0], pair)
	k.untouched(t, c, nil)
}

// look is a time in which the longest pauses are looked for.
type look struct {
	pair  []*participant
	began time.Time
	heard map[*participant]flow
}

// pauses are the longest ones of a time: of a synthetic stream, between two pictures at a browser, and the largest share
// of sound that a browser had to make up.
type pauses struct {
	stream, picture time.Duration
	madeUp          float64
}

func beginLook(t *testing.T, pair []*participant) *look {
	t.Helper()
	l := &look{pair: pair, heard: soundOf(t, pair)}
	for _, p := range pair {
		p.watchFrames(t)
	}
	l.began = time.Now()
	return l
}

// end is what was seen since the beginning.
func (l *look) end(t *testing.T, g *throng) pauses {
	t.Helper()
	seen := pauses{stream: g.longestPause(t, l.began, time.Now())}
	for _, p := range l.pair {
		seen.picture = max(seen.picture, p.longestFrameGap(t))
	}
	for p, now := range soundOf(t, l.pair) {
		was := l.heard[p]
		seen.madeUp = max(seen.madeUp, (now.concealed-was.concealed)/max(1, now.total-was.total))
	}
	return seen
}

// plus is what is allowed where p is the noise: twice that, and not less than so much more.
func (p pauses) plus(least time.Duration) pauses {
	return pauses{p.stream + max(p.stream, least), p.picture + max(p.picture, least), p.madeUp + 0.25}
}

// String gives all three.
func (p pauses) String() string {
	return fmt.Sprintf("%v of a stream, %v between pictures, %.0f %% of the sound made up",
		p.stream.Round(time.Millisecond), p.picture.Round(time.Millisecond), 100*p.madeUp)
}

// within fails where a pause is longer than is allowed.
func (p pauses) within(t *testing.T, bound pauses) {
	t.Helper()
	if p.stream > bound.stream || p.picture > bound.picture || p.madeUp > bound.madeUp {
		t.Errorf("media paused: %v; at most %v is allowed", p, bound)
	}
}

// someCall is a room of the crowd.
func someCall(t *testing.T, rooms map[string][]heldRoom) heldRoom {
	t.Helper()
	for room, on := range rooms {
		if strings.HasPrefix(room, "load-") {
			return on[0]
		}
	}
	t.Fatalf("the crowd has no room among %d", len(rooms))
	return heldRoom{}
}

func slowest(at []time.Time) time.Time { return slices.MaxFunc(at, time.Time.Compare) }

// inAfter fails if the first new join, or that of somebody who had waited, the library among them, took longer from the store's
// return than storeReturn and twice what as many joins at once took in the same run with the store there.
func inAfter(t *testing.T, back time.Time, usual time.Duration, first time.Time, waited []time.Time) {
	t.Helper()
	page := waited[len(waited)-1].Sub(back).Round(time.Millisecond)
	slices.SortFunc(waited, time.Time.Compare)
	at := func(n int) time.Duration { return waited[n].Sub(back).Round(time.Millisecond) }
	last := len(waited) - 1
	t.Logf("after the store's first PING a new join was in in %v; of %d who waited half in %v, all in %v, the library in %v; before the fault as many joins at once took %v",
		first.Sub(back).Round(time.Millisecond), len(waited), at(last/2), at(last), page, usual.Round(time.Millisecond))
	limit := storeReturn + 2*usual
	if took := first.Sub(back); took > limit || at(last) > limit {
		t.Errorf("a new join was in %v after the store's return, the last who waited %v; want at most %v", took, at(last), limit)
	}
}

// refusedClearly: a join of a new room is refused at once with a code and a sentence, and an operator's question
// with a status.
func refusedClearly(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	began := time.Now()
	_, _, err := joinAs(t.Context(), c, "asked-once", "impatient")
	refused, isRefusal := errors.AsType[*peer.RefusedError](err)
	if !isRefusal || refused.Code != wire.CodeStoreUnavailable || !strings.Contains(strings.ToLower(refused.Message), "try again") {
		t.Errorf("a join of a new room was answered %v, want %s", err, wire.CodeStoreUnavailable)
	}
	if took := time.Since(began); took > 5*time.Second { // 0.3 s for the store
		t.Errorf("the refusal took %v", took)
	}
	if err := c.Admin(t.Context(), "rooms/asked-once", nil); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("why a new room lives somewhere was answered %v, want status 503", err)
	}
}

// soundOf is what each page has heard of the other, and when.
func soundOf(t *testing.T, pair []*participant) map[*participant]flow {
	t.Helper()
	heard := make(map[*participant]flow)
	for i, p := range pair {
		heard[p] = p.mustStats(t).flowFrom(pair[1-i].id)
	}
	return heard
}
