package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// storeCalls calls of two go on; storeWaits people wait for a new room each. The run is watched for storeQuiet before the
// fault. People must be in within storeReturn of the store's first answer to PING.
const (
	storeCalls  = 50
	storeWaits  = 10
	storeQuiet  = 4 * time.Second
	storeReturn = time.Second
)

// storeRounds bounds how often the store is killed: a fault of the product shows each time, a pause of the machine does
// not.
const storeRounds = 3

type storeKill struct {
	*kept

	c     *devcluster.Cluster
	store *storetest.Process
	pair  []*participant
	came  []visit
}

// TestAHundredPeopleDoNotNeedTheStore kills the store under a hundred synthetic people and two browsers. Media goes on,
// people join known rooms, new rooms are refused for now, and those who wait are in within a second of its return. What
// a busy machine does to pauses and joins is measured before the fault, and allowed again.
func TestAHundredPeopleDoNotNeedTheStore(t *testing.T) {
	needChromium(t, 2)
	fleet := storetest.StartAlone(t)
	c := startCluster(t, devcluster.Options{Redis: fleet.URL})
	s := &storeKill{c: c, store: fleet.Processes[0], pair: joinAll(t, c.URL(), "pair", nil, "Ada", "Alan")}
	var calls []*people
	for i := range storeCalls {
		calls = append(calls, gather(t, c, fmt.Sprintf("call-%d", i), 2))
	}
	s.kept = keep(t, c, calls)
	s.longest = time.Minute // Each round has bounds of its own.
	before := heldOnce(t, c, "pair")
	for _, p := range s.pair {
		p.mark(t)
	}
	var late []string
	for round := range storeRounds {
		if late = s.round(t, round); len(late) == 0 {
			break
		}
		t.Logf("round %d: %s", round, strings.Join(late, "; "))
	}
	for _, what := range late {
		t.Error(what)
	}
	undisturbed(t, c, before, s.pair)
	s.untouched(t, c, s.came)
}

func (s *storeKill) round(t *testing.T, n int) (late []string) {
	t.Helper()
	var usual time.Duration
	noise := s.pauses(t, func() {
		began := time.Now()
		usual = awaitWaiters(t, waitAll(t, s.c, fmt.Sprintf("usual-%d", n), storeWaits), 0).Sub(began)
		<-time.After(storeQuiet - time.Since(began))
	})
	bound := pauses{noise.stream + max(noise.stream, time.Second), noise.picture + max(noise.picture, time.Second), noise.madeUp + 0.25}

	seen := s.pauses(t, func() {
		visits := send(t, s.c, 20, keptAndNew(s.calls, fmt.Sprintf("new-%d", n)))
		visits.waitFor(t, 30*time.Second, 5, "visitors come", succeeded)
		killed := time.Now()
		s.store.Kill(t)
		waiting := waitAll(t, s.c, fmt.Sprintf("waited-for-%d", n), storeWaits)
		waitInPage(t, s.pair[0], s.c, fmt.Sprintf("waited-for-by-a-page-%d", n))
		visits.waitFor(t, 30*time.Second, 5, "known rooms are joined", both(succeeded, within(killed, time.Now().Add(time.Hour))))
		visits.waitFor(t, 30*time.Second, 2, "new rooms are refused for now", refusedForTheStore)
		if err := s.c.Admin(t.Context(), "rooms/asked-once", nil); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("why a new room lives somewhere was answered %v, want status 503", err)
		}
		awaitWaiters(t, waiting, 3)
		waitedInPage(t, s.pair[0], 3)
		<-time.After(time.Until(killed.Add(max(storeQuiet, 2*bound.stream))))

		s.store.Restart(t)
		back := time.Now()
		visits.waitFor(t, 30*time.Second, 1, "new rooms open", both(both(toNew, succeeded), within(back, time.Now().Add(time.Hour))))
		first := visits.those(both(both(toNew, succeeded), within(back, time.Now())))[0].ended.Sub(back)
		last, page := awaitWaiters(t, waiting, 0).Sub(back), waitedInPage(t, s.pair[0], 0).Sub(back)
		visits.end()
		onlyNewRoomsWereRefused(t, visits)
		s.came = append(s.came, visits.those(succeeded)...)
		for _, v := range visits.those(refusedForTheStore) {
			if refused, _ := errors.AsType[*peer.RefusedError](v.err); !strings.Contains(strings.ToLower(refused.Message), "try again") || v.ended.Sub(v.began) > 5*time.Second {
				t.Errorf("a join of a new room was answered %q after %v", refused.Message, v.ended.Sub(v.began))
			}
		}
		t.Logf("away for %v; after its first PING a new join was in in %v, all who waited in %v, the library in %v; before the fault as many joins at once took %v",
			back.Sub(killed).Round(time.Millisecond), first.Round(time.Millisecond), last.Round(time.Millisecond), page.Round(time.Millisecond), usual.Round(time.Millisecond))
		if limit := storeReturn + 2*usual; first > limit || last > limit || page > limit {
			late = append(late, fmt.Sprintf("a new join was in %v after the store's return, the last who waited %v, the library %v; want at most %v", first, last, page, limit))
		}
	})
	t.Logf("longest pauses %v, before the fault %v", seen, noise)
	if seen.stream > bound.stream || seen.picture > bound.picture || seen.madeUp > bound.madeUp {
		late = append(late, fmt.Sprintf("pauses are %v, want at most %v", seen, bound))
	}
	return late
}

// pauses are the longest of a synthetic stream and between two pictures at a browser, and the largest share of sound
// that a browser made up.
type pauses struct {
	stream, picture time.Duration
	madeUp          float64
}

func (p pauses) String() string {
	return fmt.Sprintf("%v of a stream, %v between pictures, %.0f %% of the sound made up",
		p.stream.Round(time.Millisecond), p.picture.Round(time.Millisecond), 100*p.madeUp)
}

// pauses are those while something is done.
func (s *storeKill) pauses(t *testing.T, during func()) (seen pauses) {
	t.Helper()
	var heard []flow
	for i, p := range s.pair {
		heard = append(heard, p.mustStats(t).flowFrom(s.pair[1-i].id))
		p.watchFrames(t)
	}
	s.forgetGaps()
	during()
	seen.stream = s.longestGap(t)
	for i, p := range s.pair {
		now := p.mustStats(t).flowFrom(s.pair[1-i].id)
		seen.picture = max(seen.picture, p.longestFrameGap(t))
		seen.madeUp = max(seen.madeUp, (now.concealed-heard[i].concealed)/max(1, now.total-heard[i].total))
	}
	return seen
}
