package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

func entry(who string, limit int) waitlist.Entry {
	return waitlist.Entry{Identity: who, Cap: limit, Wait: true}
}

// A thousand people join a room for ten at once, over three nodes: ten are in, and the others stand in the order in which the
// store took them.
func TestThousandJoinsAtOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		people, places := 1000, 10
		if server.Name == "miniredis" {
			people = 200 // Each script is compiled anew there; who waits and does not check in for 10 s is dropped.
		}
		r := newWaitingRig(t, patient(server))
		nodes := []*Store{r.store, open(t, patient(server)), open(t, patient(server))}
		answers := make([]waitlist.Answer, people)
		var joins sync.WaitGroup
		for i := range people {
			joins.Go(func() {
				p := storetest.At("a", 1000+uint64(i), 1)
				testkit.Eventually(t, "an answer of a busy store", func() bool { // to a repeated question, as after a lost reply
					_, _, answer, err := nodes[i%len(nodes)].Enter(t.Context(), club, p, "", entry(fmt.Sprint("user-", i), places))
					answers[i] = answer
					return err == nil
				})
			})
		}
		joins.Wait()
		var waiting []waitlist.Answer
		for _, a := range answers {
			if a.Outcome == waitlist.Waiting {
				waiting = append(waiting, a)
			}
		}
		slices.SortFunc(waiting, func(a, b waitlist.Answer) int { return int(a.Ticket - b.Ticket) })
		if len(waiting) != people-places {
			t.Fatalf("%d of %d people wait for %d places", len(waiting), people, places)
		}
		for i, a := range waiting {
			if a.Place.Position != i+1 {
				t.Fatalf("ticket %d of %d was told position %d", i+1, len(waiting), a.Place.Position)
			}
		}
		if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Inside != places || door.Length != people-places {
			t.Errorf("the door is %+v", door)
		}
	})
}

// A look at a room without a cap leaves it one without a door, whose people enter by a claim.
func TestLookMakesNoDoor(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		doors := func() int64 { return r.raw.Exists(t.Context(), r.key("door")).Val() }
		if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Cap != waitlist.NoCap || doors() != 0 {
			t.Errorf("%+v, and %d doors", door, doors())
		}
		two := 2
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &two})
		if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Cap != two || doors() != 1 {
			t.Errorf("%+v, and %d doors", door, doors())
		}
	})
}

// Who runs the room sees the names of the line, and of nobody who has left it.
func TestTheLineHasNames(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		for who, name := range map[string]string{"ann": "Ann", "bob": ""} {
			e := entry(who, 0)
			e.Name = name
			r.enter(e)
		}
		names := map[string]string{}
		for _, w := range r.door(waitlist.Order{Deed: waitlist.Look}).Line {
			names[w.Identity] = w.Name
		}
		if want := map[string]string{"ann": "Ann", "bob": ""}; !maps.Equal(names, want) {
			t.Errorf("in line are %v, want %v", names, want)
		}
		r.door(waitlist.Order{Deed: waitlist.Turn, Identity: "ann"})
		if n := r.raw.Exists(t.Context(), r.key("names")).Val(); n != 0 {
			t.Error("a name outlives its place")
		}
	})
}

// Of the caps in tokens the lowest counts until the room is empty, so nobody raises it with another token. What is set live wins, and
// the server's counts where no token says one.
func TestWhichCapCounts(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		enters := func(who string, own, usual int, want waitlist.Outcome) {
			t.Helper()
			if got := r.enter(waitlist.Entry{Identity: who, Cap: own, Usual: usual}); got.Outcome != want {
				t.Errorf("%s with %d gets %+v, want %d", who, own, got, want)
			}
		}
		counts := func(want int) {
			t.Helper()
			if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Cap != want {
				t.Errorf("the door is %+v, want a cap of %d", door, want)
			}
		}
		enters("ann", waitlist.NoCap, 1, waitlist.Admitted)
		enters("bob", waitlist.NoCap, 0, waitlist.Refused)
		enters("cy", 2, 1, waitlist.Admitted)
		enters("dee", 3, 1, waitlist.Refused)
		counts(2)
		three := 3
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &three})
		enters("dee", 1, 1, waitlist.Admitted)
		enters("eve", 9, 9, waitlist.Refused)
		none := waitlist.NoCap
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &none})
		enters("eve", 9, 9, waitlist.Admitted)
		r.must(r.raw.HDel(t.Context(), r.key("door"), "cap").Err())
		counts(1)
		r.must(r.raw.Del(t.Context(), r.key("admitted"), r.key("roster")).Err())
		enters("fay", 4, 1, waitlist.Admitted)
		counts(4)
	})
}

// Where the count is read in one pipeline and the person is added in the next one, two nodes that read the same count both
// admit. Ours lets one in.
func TestTwoNodesThatReadOneCount(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		ctx, count := t.Context(), func() int64 { return r.raw.HLen(t.Context(), "participants").Val() }
		add := func(read int64, who string) {
			if read < 1 {
				r.must(r.raw.HSet(ctx, "participants", who, "data").Err())
			}
		}
		ann, bob := count(), count()
		add(ann, "ann")
		add(bob, "bob")
		if count() != 2 {
			t.Errorf("%d people with a cap of 1: the other design races no more, and this test shows nothing", count())
		}
		outcomes := []waitlist.Outcome{r.enter(entry("ann", 1)).Outcome, r.enter(entry("bob", 1)).Outcome}
		if want := []waitlist.Outcome{waitlist.Admitted, waitlist.Waiting}; !slices.Equal(outcomes, want) {
			t.Errorf("the outcomes are %v, want %v", outcomes, want)
		}
	})
}

// Admission, claim and roster are one round trip; so is a claim of a room without a cap, which sees a door.
func TestEnteringIsOneRoundTrip(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		ctx, mine, other := t.Context(), storetest.At("a", 1000, 1), storetest.At("b", 1001, 2)
		trips := func(what string, do func() error) {
			t.Helper()
			before := r.store.RoundTrips()
			r.must(do())
			if n := r.store.RoundTrips() - before; n != 1 {
				t.Errorf("%s took %d round trips", what, n)
			}
		}
		r.must(r.store.Ping(ctx))
		present(t, r.store)
		trips("a claim", func() error { _, _, err := r.store.Claim(ctx, "plain", mine, ""); return err })
		trips("the first entry", func() error {
			p, in, a, err := r.store.Enter(ctx, club, mine, "", entry("ann", 1))
			if p != mine || in == 0 || a.Outcome != waitlist.Admitted || a.Roster {
				t.Errorf("ann gets %v in %d, %+v", p, in, a)
			}
			return err
		})
		trips("a second tab", func() error {
			p, _, a, err := r.store.Enter(ctx, club, other, "", entry("ann", 1))
			if p != mine || a.Outcome != waitlist.Admitted || a.Roster { // The reservation alone does not prove who is inside.
				t.Errorf("ann gets %v, %+v", p, a)
			}
			return err
		})
		trips("a full room", func() error {
			p, _, a, err := r.store.Enter(ctx, club, other, "", entry("bob", 1))
			if p != mine || a.Outcome != waitlist.Waiting || a.Place != (waitlist.Place{Position: 1, Reason: waitlist.Full}) {
				t.Errorf("bob gets %v, %+v", p, a)
			}
			return err
		})
		trips("a claim of a room with a door", func() error {
			p, _, err := r.store.Claim(ctx, club, other, "")
			if p != mine || !errors.Is(err, waitlist.ErrDoor) {
				t.Errorf("the claim is %v, %v", p, err)
			}
			return nil
		})
		trips("check-ins of two rooms", func() error {
			answers := r.store.CheckIn(ctx, []waitlist.Asked{{Room: club, Cap: 1, Who: []string{"bob"}}, {Room: "other", Cap: 1, Who: []string{"cy"}}})
			return errors.Join(answers[0].Err, answers[1].Err)
		})
	})
}

// Who waits claims nothing: nobody opens a room in which nobody is.
func TestWhoWaitsClaimsNothing(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		ctx, p := t.Context(), storetest.At("a", 1000, 1)
		if got, _, a, err := r.store.Enter(ctx, club, p, "", entry("ann", 0)); !got.IsZero() || a.Outcome != waitlist.Waiting || err != nil {
			t.Errorf("ann gets %v, %+v, %v", got, a, err)
		}
		if got, _, a, err := r.store.Enter(ctx, "open", pin.Pin{}, "", entry("ann", 1)); !got.IsZero() || a.Outcome != waitlist.Admitted || err != nil {
			t.Errorf("without a pin ann gets %v, %+v, %v", got, a, err)
		}
		r.must(r.raw.Set(ctx, pinKey(club), "garbage", 0).Err())
		var corrupt *pin.CorruptError
		if _, _, _, err := r.store.Enter(ctx, club, p, "", entry("ann", 1)); !errors.As(err, &corrupt) || corrupt.Raw != "garbage" {
			t.Errorf("a corrupt pin is %v", err)
		}
		if _, _, err := r.store.Claim(ctx, club, p, ""); !errors.As(err, &corrupt) || !errors.Is(err, waitlist.ErrDoor) {
			t.Errorf("a corrupt pin behind a door is %v", err)
		}
	})
}

// Nobody is dropped, and nobody let in, because the store was away for longer than people may miss check-ins.
func TestStoreThatWasAwayDropsNobody(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
		r.enter(entry("cy", 1))
		r.pass(time.Minute)
		r.show(nil)
		if got := r.checkIn(1, "cy"); got.Places[0] != 2 {
			t.Errorf("cy is told %d while bob may come back", got.Places[0])
		}
		r.pass(2 * time.Second)
		r.checkIn(1, "cy")
		r.pass(2 * time.Second)
		if got := r.checkIn(1, "cy"); got.Places[0] != waitlist.LetIn {
			t.Errorf("cy is told %d after bob stayed away", got.Places[0])
		}
	})
}

// The roster of a media node that died with everybody is dropped by who knows that, and no other.
func TestRosterOfTheDeadIsDropped(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
		r.pass(20 * time.Second)
		r.checkIn(1, "bob")
		r.pass(4 * time.Second / 2)
		r.checkIn(1, "bob")
		r.pass(4 * time.Second / 2)
		ask := func(dead string) int {
			return r.store.CheckIn(t.Context(), []waitlist.Asked{{Room: club, Cap: 1, Dead: dead, Who: []string{"bob"}}})[0].Places[0]
		}
		if got := ask(storetest.At("b", 1, 1).Encode()); got != 1 {
			t.Errorf("bob is told %d beside ann", got)
		}
		if got := ask(r.writer); got != waitlist.LetIn {
			t.Errorf("bob is told %d after ann's node died", got)
		}
	})
}

// A room without headroom lets nobody in until its first in line has found a node.
func TestLineOfARoomWithoutHeadroom(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		hold := entry("ann", 2)
		hold.Hold = time.Minute
		r.enter(entry("ann", 2)) // is let in, and finds no node
		for i, e := range []waitlist.Entry{hold, entry("bob", 2), entry("cy", 2)} {
			if got := r.enter(e); got.Outcome != waitlist.Waiting || got.Place.Position != i+1 || got.Place.Reason != waitlist.NoCapacity {
				t.Errorf("%s gets %+v", e.Identity, got)
			}
		}
		r.show(nil)
		r.door(waitlist.Order{Deed: waitlist.Open})
		if got := r.checkIn(2, "ann", "bob", "cy"); !slices.Equal(got.Places, []int{waitlist.LetIn, waitlist.LetIn, 1}) {
			t.Errorf("the places are %v", got.Places)
		}
	})
}

// FuzzScriptAnswer reads what a foreign server may answer.
func FuzzScriptAnswer(f *testing.F) {
	f.Add("1", int64(0), "full", "-3", 9)
	f.Add("1e400", int64(-1), "", "NaN", 3)
	f.Add("ann", int64(1), "closed", "1795390102048863", 11)
	f.Fuzz(func(t *testing.T, a string, n int64, b, c string, length int) {
		if length < 0 || length > 40 {
			return
		}
		fields := []any{a, n, b, c, nil, []any{a}, true}
		answer := make([]any, length)
		for i := range answer {
			answer[i] = fields[(i+int(n&7))%len(fields)]
		}
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(answer)
		if got := enteredBy(cmd); got.err == nil && (got.admission.Outcome < 0 || got.admission.Outcome > waitlist.Inside || got.admission.Place.Position < 0) {
			t.Errorf("an entry is %+v", got)
		}
		var checked waitlist.Checked
		if checkedBy(&checked, 2, cmd); checked.Err == nil && len(checked.Places) != 2 {
			t.Errorf("check-ins are %+v", checked)
		}
		if door, err := readDoor(answer); err == nil && door.Pace.Estimate(1) < 0 {
			t.Errorf("a door is %+v", door)
		}
	})
}

// BenchmarkLine is one check-in at 10,000 people who wait, beside the common design: every person asks alone, in pipelines.
func BenchmarkLine(b *testing.B) {
	const people = 10_000
	fleet := storetest.StartAlone(b)
	r := newWaitingRig(b, patient(fleet.Server))
	ctx := b.Context()
	r.show(map[string]string{"p-1": "somebody"})
	var who []string
	for i := range people {
		who = append(who, fmt.Sprintf("user-%d", i))
		r.enter(entry(who[i], 1))
	}
	bytes := int64(0)
	for _, part := range []string{"line", "waiting"} {
		bytes += r.raw.MemoryUsage(ctx, r.key(part), 0).Val()
	}
	run := func(name string, check func() error) {
		b.Run(name, func(b *testing.B) {
			r.must(r.raw.ConfigResetStat(ctx).Err())
			for b.Loop() {
				r.must(check())
			}
			_, micros := servedBy(r.raw.Info(ctx, "commandstats").Val(), name == "scripts")
			b.ReportMetric(micros/1000/float64(b.N), "server-ms/check")
			b.ReportMetric(float64(bytes)/people, "store-B/person")
		})
	}
	run("scripts", func() error {
		return r.store.CheckIn(ctx, []waitlist.Asked{{Room: club, Cap: 1, Who: who}})[0].Err
	})
	run("one_by_one", func() error {
		for _, one := range who {
			pipe := r.store.client.Pipeline()
			pipe.HLen(ctx, r.key("roster"))
			pipe.ZCard(ctx, r.key("line"))
			pipe.ZRank(ctx, r.key("line"), one)
			pipe.HGet(ctx, r.key("roster"), one)
			pipe.ZRangeByScore(ctx, r.key("waiting"), &redis.ZRangeBy{Min: "0", Max: fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli())})
			if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			pipe = r.store.client.Pipeline()
			pipe.ZAdd(ctx, r.key("waiting"), redis.Z{Score: float64(time.Now().UnixMilli()), Member: one})
			pipe.Expire(ctx, r.key("waiting"), time.Hour)
			pipe.ZRank(ctx, r.key("line"), one)
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// servedBy is the calls and microseconds of scripts, or of everything else.
func servedBy(info string, scripts bool) (calls, micros float64) {
	for _, one := range commandStats(info) {
		if (one.name == "eval") == scripts {
			calls += one.calls
			micros += one.micros
		}
	}
	return calls, micros
}

type commandStat struct {
	name          string
	calls, micros float64
}

func commandStats(info string) (all []commandStat) {
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		one := commandStat{name: name}
		if _, err := fmt.Sscanf(stats, "calls=%f,usec=%f,", &one.calls, &one.micros); err == nil {
			all = append(all, one)
		}
	}
	return all
}
