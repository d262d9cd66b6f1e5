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

// storeRooms rooms of two talk; storeWaits people wait for a new room each. The run is watched for storeQuiet before the
// fault. People must be in within storeReturn of the store's first answer to PING.
const (
	storeRooms  = 50
	storeWaits  = 10
	storeQuiet  = 4 * time.Second
	storeReturn = time.Second
)

// storeRounds bounds how often the store is killed: a fault of the product shows each time, a pause of the machine does
// not.
const storeRounds = 3

type storeKill struct {
	c     *devcluster.Cluster
	store *storetest.Process
	pair  []*participant
	crowd *throng
	call  heldRoom // one of the crowd's
}

// TestAHundredPeopleDoNotNeedTheStore kills the store under a hundred synthetic people and two browsers. Media goes on,
// people join known rooms, new rooms are refused for now, and those who wait are in within a second of its return. What
// a busy machine does to pauses and joins is measured before the fault, and allowed again.
func TestAHundredPeopleDoNotNeedTheStore(t *testing.T) {
	needChromium(t)
	fleet := storetest.StartAlone(t)
	c := onStore(t, fleet)
	s := &storeKill{c: c, store: fleet.Processes[0]}
	s.pair = []*participant{join(t, c.URL(), "pair", "Ada", nil), join(t, c.URL(), "pair", "Alan", nil)}
	s.crowd = startThrong(t, c, storeRooms)
	for _, p := range s.pair {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, s.pair)
	s.crowd.settles(t)
	rooms := holdings(t, c)
	s.call = someCall(t, rooms)
	k := keepRooms(t, c, rooms)
	for _, p := range s.pair {
		p.mark(t)
	}
	began := time.Now()
	var late []string
	for round := range storeRounds {
		s.crowd.settles(t)
		if late = s.round(t, round); len(late) == 0 {
			break
		}
		t.Logf("round %d: %s", round, strings.Join(late, "; "))
	}
	for _, what := range late {
		t.Error(what)
	}
	s.crowd.undisturbed(t, began)
	undisturbed(t, c, rooms["pair"][0], s.pair)
	k.untouched(t, c, nil)
}

func (s *storeKill) round(t *testing.T, n int) (late []string) {
	t.Helper()
	calm := beginLook(t, s.pair)
	usual := slowest(allIn(t, waitAll(t, s.c, fmt.Sprintf("usual-%d", n), storeWaits))).Sub(calm.began)
	s.crowd.until(t, calm.began.Add(storeQuiet))
	noise := calm.end(t, s.crowd)
	bound := noise.plus(time.Second)

	fault := beginLook(t, s.pair)
	s.store.Kill(t)
	waiting := waitAll(t, s.c, fmt.Sprintf("waited-for-%d", n), storeWaits)
	waitInPage(t, s.pair[0], s.c, fmt.Sprintf("waited-for-by-a-page-%d", n))
	refusedClearly(t, s.c)
	s.joinsKnown(t)
	refusedAgain(t, 3, waiting)
	eventually(t, 30*time.Second, "the library is refused for now", func() error {
		if refused, in := waitedInPage(t, s.pair[0]); refused < 3 || !in.IsZero() {
			return fmt.Errorf("refused %d times, in: %v", refused, in)
		}
		return nil
	})
	s.crowd.until(t, fault.began.Add(max(storeQuiet, 2*bound.stream)))

	s.store.Restart(t)
	back := time.Now()
	first := firstIn(t, s.c, n)
	ins := allIn(t, waiting)
	var shown time.Time
	eventually(t, 30*time.Second, "the library gets in", func() error {
		if _, shown = waitedInPage(t, s.pair[0]); shown.IsZero() {
			return errors.New("it waits")
		}
		return nil
	})
	s.crowd.until(t, time.Now())
	seen := fault.end(t, s.crowd)
	t.Logf("away for %v; longest pauses %v, before the fault %v", back.Sub(fault.began).Round(time.Millisecond), seen, noise)
	return append(seen.over(bound), inAfter(t, back, usual, first, append(ins, shown))...)
}

// The signaling node that the socket gets to has seen the call placed, or the next one has.
func (s *storeKill) joinsKnown(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, "somebody joins a call while the store is away", func() error {
		socket, at, err := joinAs(t.Context(), s.c, s.call.Room, "late")
		if err != nil {
			return err
		}
		stays(t, socket)
		if string(at.Node) != s.call.Node {
			t.Errorf("a join of %s was sent to %s, it is on %s", s.call.Room, at.Node, s.call.Node)
		}
		return nil
	})
}

type look struct {
	pair  []*participant
	began time.Time
	heard map[*participant]flow
}

// pauses are the longest of a synthetic stream and between two pictures at a browser, and the largest share of sound
// that a browser made up.
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

// plus allows twice the noise p, and at least so much more.
func (p pauses) plus(least time.Duration) pauses {
	return pauses{p.stream + max(p.stream, least), p.picture + max(p.picture, least), p.madeUp + 0.25}
}

func (p pauses) String() string {
	return fmt.Sprintf("%v of a stream, %v between pictures, %.0f %% of the sound made up",
		p.stream.Round(time.Millisecond), p.picture.Round(time.Millisecond), 100*p.madeUp)
}

// over says what of p is not within a bound.
func (p pauses) over(bound pauses) []string {
	if p.stream > bound.stream || p.picture > bound.picture || p.madeUp > bound.madeUp {
		return []string{fmt.Sprintf("media paused: %v; at most %v is allowed", p, bound)}
	}
	return nil
}

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

// inAfter reports joins, new or waiting, that took longer after the store's return than storeReturn and twice the usual
// time.
func inAfter(t *testing.T, back time.Time, usual time.Duration, first time.Time, waited []time.Time) []string {
	t.Helper()
	page := waited[len(waited)-1].Sub(back).Round(time.Millisecond)
	slices.SortFunc(waited, time.Time.Compare)
	at := func(n int) time.Duration { return waited[n].Sub(back).Round(time.Millisecond) }
	last := len(waited) - 1
	t.Logf("after the store's first PING a new join was in in %v; of %d who waited half in %v, all in %v, the library in %v; before the fault as many joins at once took %v",
		first.Sub(back).Round(time.Millisecond), len(waited), at(last/2), at(last), page, usual.Round(time.Millisecond))
	limit := storeReturn + 2*usual
	if took := first.Sub(back); took > limit || at(last) > limit {
		return []string{fmt.Sprintf("a new join was in %v after the store's return, the last who waited %v; want at most %v", took, at(last), limit)}
	}
	return nil
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

func soundOf(t *testing.T, pair []*participant) map[*participant]flow {
	t.Helper()
	heard := make(map[*participant]flow)
	for i, p := range pair {
		heard[p] = p.mustStats(t).flowFrom(pair[1-i].id)
	}
	return heard
}
