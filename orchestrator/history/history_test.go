package history

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// For a longer search, or one seed again.
const (
	countVariable = "HOLDFAST_HISTORIES"    // schedules per mix of faults
	seedVariable  = "HOLDFAST_HISTORY_SEED" // only this one, or the first of so many
)

// schedules is enough that `go test` finds every built-in fault.
const (
	schedules = 58
	enough    = 10
)

// ordinary faults leave the store its memory.
func ordinary() faults {
	return faults{slow: true, lose: true, late: true, kill: true, suspect: true, cut: true, full: true, leave: true, fresh: true}
}

type mix struct {
	name   string
	faults faults
}

func mixes() []mix {
	with := func(change func(*faults)) faults {
		f := ordinary()
		change(&f)
		return f
	}
	return []mix{
		{"a store that remembers", ordinary()},
		{"a store that restarts empty", with(func(f *faults) { f.empty = true })},
		{"a store that forgets twice in a row", with(func(f *faults) { f.empty, f.twice = true, true })},
		{"a store that forgets again and again", with(func(f *faults) { f.empty, f.storm = true, true })},
		{"a store that loses its last writes", with(func(f *faults) { f.rollBack = true })},
		{"both", with(func(f *faults) { f.empty, f.rollBack = true, true })},
		{"a store that goes back and forgets again and again", with(func(f *faults) { f.empty, f.rollBack, f.storm = true, true, true })},
		{"damaged pins", with(func(f *faults) { f.damage = true })},
		{"everything", with(func(f *faults) { f.empty, f.rollBack, f.damage = true, true, true })},
		{"everything, and a majority that vouches for owners", with(func(f *faults) { f.empty, f.rollBack, f.damage, f.trust = true, true, true, true })},
		{"everything, and clocks that differ", with(func(f *faults) { f.empty, f.rollBack, f.damage, f.skew = true, true, true, true })},
		{"everything, and a sweep of the pins of dead nodes", with(func(f *faults) { f.empty, f.rollBack, f.damage, f.sweep = true, true, true, true })},
		{"writes refused while reads work, and a majority that vouches", with(func(f *faults) { f.empty, f.rollBack, f.deny, f.trust = true, true, true, true })},
		{"a unanswered node", with(func(f *faults) { f.empty, f.rollBack, f.unanswered = true, true, true })},
		{"everything, and a store's clock that is set", with(func(f *faults) { f.empty, f.rollBack, f.damage, f.setClock = true, true, true, true })},
	}
}

func count(t *testing.T) (first, past uint64) {
	t.Helper()
	number := func(variable string) (uint64, bool) {
		text := os.Getenv(variable)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
		return n, true
	}
	seed, one := number(seedVariable)
	n, many := number(countVariable)
	switch {
	case many:
		return seed, seed + n
	case one:
		return seed, seed + 1
	case testkit.Race:
		return 0, schedules / 4
	default:
		return 0, schedules
	}
}

// Place, Rehome, PlaceAgain and refreshes under random faults are linearizable, fences grow, no two nodes serve under
// one fence, no node goes back to a lower one, and at the end all agree.
func TestHistoriesAreLinearizable(t *testing.T) {
	first, past := count(t)
	for _, m := range mixes() {
		t.Run(m.name, func(t *testing.T) {
			began, operations, all := time.Now(), 0, notes{}
			var failed []uint64
			for seed := first; seed < past && len(failed) < enough; seed++ {
				tr := newTrial(seed, m.faults)
				v := tr.run(t)
				operations += len(v.ops)
				all.add(v.notes)
				if len(v.faults) == 0 {
					continue
				}
				if failed = append(failed, seed); len(failed) == 1 {
					small, least := tr.shrink(t)
					t.Logf("seed %d (%s=%d), the least schedule that fails:\n%s", seed, seedVariable, seed, plan(small.actions))
					least.report(t, fmt.Sprintf("seed-%d", seed))
				}
			}
			took := time.Since(began)
			t.Logf("%d schedules, %d operations, %.0f schedules a second; %v; failed: %v", past-first, operations, float64(past-first)/took.Seconds(), all, failed)
		})
	}
}

// A seed gives the same history, to the nanosecond.
func TestSeedReproducesItsHistory(t *testing.T) {
	all := mixes()
	var trials []trial
	for seed := range uint64(25) {
		trials = append(trials, newTrial(seed, all[int(seed)%len(all)].faults))
	}
	for _, seed := range []uint64{183, 485, 4056} { // Two media nodes refresh at one instant, and get no answer.
		trials = append(trials, newTrial(seed, all[12].faults), newTrial(seed, all[12].faults))
	}
	for _, tr := range trials {
		one, other := tr.run(t), tr.run(t)
		was, is := strings.Split(text(one.ops), "\n"), strings.Split(text(other.ops), "\n")
		for i := range was {
			if i >= len(is) || was[i] != is[i] {
				t.Fatalf("seed %d, operation %d: %q, and then %q", tr.seed, i, was[i], is[min(i, len(is)-1)])
			}
		}
	}
}

// The schedules that find built-in faults pass without them.
func TestSchedulesAboutOneThingHold(t *testing.T) {
	for name, about := range map[string]func(uint64) []action{"a move is lost": lostMove, "a pin expires": lapsed, "a pin is removed": swept} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(schedules) {
				tr := trial{seed: seed, actions: about(seed)}
				if v := tr.run(t); len(v.faults) > 0 {
					small, least := tr.shrink(t)
					t.Logf("seed %d, the least schedule that fails:\n%s", seed, plan(small.actions))
					least.report(t, fmt.Sprintf("seed-%d", seed))
					return
				}
			}
		})
	}
}

// With each of these faults built in, the harness has a violation within seconds.
func TestHarnessFindsBrokenPlacement(t *testing.T) {
	for _, b := range []struct {
		broken broken
		trial  func(seed uint64) trial
	}{
		{plainNX, func(seed uint64) trial { return newTrial(seed, faults{}) }},
		{plainSet, func(seed uint64) trial { return newTrial(seed, ordinary()) }},
		{writesDenied, func(seed uint64) trial { return newTrial(seed, faults{deny: true, empty: true}) }},
		{markerStays, func(seed uint64) trial { return newTrial(seed, faults{setClock: true, suspect: true}) }},
		{noNonce, func(seed uint64) trial { return trial{seed: seed, actions: lostMove(seed)} }},
		{notProlonged, func(seed uint64) trial { return trial{seed: seed, actions: lapsed(seed)} }},
		{notCompared, func(seed uint64) trial { return trial{seed: seed, actions: swept(seed)} }},
	} {
		t.Run(string(b.broken), func(t *testing.T) {
			began := time.Now()
			for seed := range uint64(2000) {
				tr := b.trial(seed)
				tr.broken = b.broken
				if v := tr.run(t); len(v.faults) > 0 {
					took := time.Since(began)
					small, least := tr.shrink(t)
					t.Logf("found with seed %d after %v: %s\nthe least schedule of %d operations:\n%s", seed, took, least.faults[0], len(least.ops), plan(small.actions))
					return
				}
			}
			t.Error("2000 schedules showed no violation")
		})
	}
}
