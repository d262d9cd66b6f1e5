package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// slowly has a TTL that no machine is slow enough to reach: tests let time pass by moving what is written.
func slowly() presence.Timing {
	return presence.Timing{TTL: time.Hour, Heartbeat: 20 * time.Minute, Sweep: 2 * time.Millisecond, Poll: time.Second}
}

// presenceRig is a store with leases, whose time a test lets pass.
type presenceRig struct {
	t   testing.TB
	raw redis.UniversalClient
	*Presence
}

func newPresenceRig(t testing.TB, server storetest.Server) presenceRig {
	t.Helper()
	if !strings.Contains(server.URL, "timeout") {
		server = patient(server)
	}
	return presenceRig{t, server.Raw, open(t, server).Presence(slowly())}
}

func (r presenceRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// pass makes everything that is written so much older.
func (r presenceRig) pass(d time.Duration) {
	r.t.Helper()
	ctx, older := r.t.Context(), -d.Milliseconds()
	sets, heads := map[string]*redis.ZSliceCmd{}, map[string]*redis.IntCmd{}
	look := r.raw.Pipeline()
	for _, keys := range r.keys {
		for _, set := range []string{keys.leases, keys.seen, keys.gone} {
			sets[set] = look.ZRangeWithScores(ctx, set, 0, -1)
		}
		heads[keys.head] = look.Exists(ctx, keys.head)
	}
	_, err := look.Exec(ctx)
	r.must(err)
	change := r.raw.Pipeline()
	for set, members := range sets {
		for _, z := range members.Val() {
			change.ZIncrBy(ctx, set, float64(older), fmt.Sprint(z.Member))
		}
	}
	for head, there := range heads {
		if there.Val() == 1 {
			change.HIncrBy(ctx, head, "swept", older)
			change.HIncrBy(ctx, head, "from", older)
		}
	}
	_, err = change.Exec(ctx)
	r.must(err)
}

// passSwept is pass with the sweeps of nodes that live.
func (r presenceRig) passSwept(d time.Duration) {
	r.t.Helper()
	for ; d > 0; d -= 15 * time.Minute {
		r.pass(min(d, 15*time.Minute))
		r.must(r.Sweep(r.t.Context()))
	}
}

// fill has a shard log so many leaves of others, and remember them.
func (r presenceRig) fill(shard presence.Shard, n int) {
	r.t.Helper()
	ctx, pipe, keys := r.t.Context(), r.raw.Pipeline(), r.keys[shard]
	for i := range n {
		pipe.RPush(ctx, keys.log, fmt.Sprintf("-%d other-%d", time.Now().UnixMilli(), i))
		pipe.ZAdd(ctx, keys.seen, redis.Z{Score: float64(time.Now().Add(-time.Hour).UnixMilli()), Member: i})
	}
	pipe.HIncrBy(ctx, keys.head, "version", int64(n))
	_, err := pipe.Exec(ctx)
	r.must(err)
}

// settled is a rig whose memory is old enough for evictions.
func (r presenceRig) settled() presenceRig {
	r.t.Helper()
	r.must(r.Sweep(r.t.Context()))
	r.passSwept(75 * time.Minute)
	return r
}

func (r presenceRig) ask(user string) presence.Status {
	r.t.Helper()
	found, err := r.Ask(r.t.Context(), []string{user})
	r.must(err)
	if len(found) != 1 || found[0].User != user {
		r.t.Fatalf("asked for %s, got %v", user, found)
	}
	return found[0]
}

func (r presenceRig) is(user string, want presence.State) {
	r.t.Helper()
	if got := r.ask(user).State; got != want {
		r.t.Errorf("%s is %s, want %s", user, got, want)
	}
}

// said is the log of a user: "+-" for a join and a leave.
func (r presenceRig) said(user string) (signs string) {
	r.t.Helper()
	lines, err := r.raw.LRange(r.t.Context(), r.keys[presence.ShardOf(user)].log, 0, -1).Result()
	r.must(err)
	for _, line := range lines {
		change, err := readChange(line)
		r.must(err)
		if change.User == user {
			signs += line[:1]
		}
	}
	return signs
}

func (r presenceRig) saysOf(user, want string) {
	r.t.Helper()
	if got := r.said(user); got != want {
		r.t.Errorf("the log of %s is %q, want %q", user, got, want)
	}
}

func lease(user, conn, room string) presence.Lease {
	return presence.Lease{User: user, Conn: conn, Room: ring.RoomID(room)}
}

// onEachPresence includes a Redis Cluster, which refuses a script over two slots.
func onEachPresence(t *testing.T, test func(t *testing.T, r presenceRig)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) { test(t, newPresenceRig(t, server)) })
	t.Run("cluster", func(t *testing.T) { test(t, newPresenceRig(t, storetest.StartCluster(t).Server)) })
}

func TestTabsAreOneUser(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx, r := t.Context(), r.settled()
		r.must(r.Add(ctx, []presence.Lease{lease("ann", "1", "a}b{"), lease("ann", "2", "a}b{"), lease("ann", "3", ""), lease("bob", "1", "x")}))
		got := r.ask("ann")
		if got.State != presence.Online || got.Connections != 3 || !slices.Equal(got.Rooms, []ring.RoomID{"a}b{"}) || got.Since.IsZero() {
			t.Errorf("ann is %+v", got)
		}
		for range 2 { // A repeated call changes nothing.
			r.must(r.Remove(ctx, []presence.Lease{lease("ann", "1", ""), lease("ann", "3", ""), lease("eve", "1", "")}))
		}
		r.is("ann", presence.Online)
		r.saysOf("ann", "+")
		for range 2 {
			r.must(r.Remove(ctx, []presence.Lease{lease("ann", "2", "")}))
		}
		if got := r.ask("ann"); got.State != presence.Offline || got.LastSeen.IsZero() || got.LastSeen.Before(r.ask("bob").Since) {
			t.Errorf("ann is %+v", got)
		}
		r.saysOf("ann", "+-")
		r.saysOf("eve", "")
		r.must(r.Add(ctx, []presence.Lease{lease("ann", "4", "")}))
		r.saysOf("ann", "+-+")
		if n, err := r.Count(ctx); n != 2 || err != nil {
			t.Errorf("%d users are online, %v", n, err)
		}
		for _, bad := range []presence.Lease{lease("", "1", ""), lease("ann", "", ""), lease("a\nb", "1", ""), lease("ann", "1\t", ""), lease("ann", "1", "x\n")} {
			if r.Add(ctx, []presence.Lease{bad}) == nil {
				t.Errorf("%q was taken", bad)
			}
		}
	})
}

// A lease lapses after a TTL and not before; a user with another one stays; the leave is logged once, with the last heartbeat.
func TestLeaseLapses(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx, r := t.Context(), r.settled()
		tabs := []presence.Lease{lease("ann", "1", ""), lease("ann", "2", ""), lease("bob", "1", "")}
		r.must(r.Add(ctx, tabs))
		last := r.ask("bob").Since
		r.passSwept(30 * time.Minute)
		if missing, err := r.Renew(ctx, tabs[:1]); len(missing) > 0 || err != nil {
			t.Errorf("missing %v, %v", missing, err)
		}
		r.passSwept(29 * time.Minute)
		r.is("bob", presence.Online)
		r.passSwept(time.Minute)
		r.is("bob", presence.Offline)
		r.saysOf("bob", "+-")
		if got := r.ask("ann"); got.State != presence.Online || got.Connections != 1 {
			t.Errorf("ann is %+v", got)
		}
		// An hour has passed, and the sweep came later than the lapse.
		if seen := r.ask("bob").LastSeen; seen.Sub(last.Add(-time.Hour)).Abs() > 30*time.Second {
			t.Errorf("bob was seen at %v, his last heartbeat was at %v", seen, last.Add(-time.Hour))
		}
		missing, err := r.Renew(ctx, tabs)
		if err != nil || len(missing) != 2 {
			t.Fatalf("missing %v, %v", missing, err)
		}
		r.must(r.Add(ctx, missing))
		r.saysOf("bob", "+-+")
		r.saysOf("ann", "+")
		r.passSwept(30 * 24 * time.Hour / 100) // Nobody sends a heartbeat.
		r.saysOf("ann", "+-")
		r.saysOf("bob", "+-+-")
	})
}

// Whoever was silent because the store was away is believed for a TTL, and an empty store says that it does not know.
func TestSilenceOfTheStoreIsNoLeave(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx := t.Context()
		r.is("ann", presence.Unknown)
		r = r.settled()
		r.is("ann", presence.Offline)
		tabs := []presence.Lease{lease("ann", "1", ""), lease("bob", "1", "")}
		r.must(r.Add(ctx, tabs))
		r.pass(3 * time.Hour)
		r.must(r.Sweep(ctx))
		r.is("ann", presence.Online)
		r.is("eve", presence.Unknown)
		for range 2 {
			if missing, err := r.Renew(ctx, tabs[:1]); len(missing) > 0 || err != nil {
				t.Errorf("missing %v, %v", missing, err)
			}
			r.saysOf("bob", "+")
			r.passSwept(30 * time.Minute)
		}
		r.saysOf("ann", "+")
		r.saysOf("bob", "+-")

		began := r.ask("ann").Since
		for _, keys := range r.keys {
			r.must(r.raw.Del(ctx, keys.all()...).Err())
		}
		r.must(r.Sweep(ctx))
		r.is("ann", presence.Unknown)
		missing, err := r.Renew(ctx, tabs[:1])
		if err != nil || len(missing) != 1 {
			t.Fatalf("missing %v, %v", missing, err)
		}
		missing[0].Since = began
		r.must(r.Add(ctx, missing))
		if got := r.ask("ann"); got.State != presence.Online || !got.Since.Equal(began) {
			t.Errorf("ann is %+v, want online since %v", got, began)
		}
		r.passSwept(75 * time.Minute)
		r.is("bob", presence.Offline)
	})
}

// Two nodes send heartbeats for one lease while a client resumes, and the old node does not hear of it. When the client has
// left, the old node brings nobody back, however long it goes on.
func TestOldNodeBringsNobodyBack(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx, r := t.Context(), r.settled()
		ann, tab := []presence.Lease{lease("ann", "1", "r")}, []presence.Lease{lease("ann", "2", "r")}
		r.must(r.Add(ctx, ann)) // the old node
		r.must(r.Add(ctx, ann)) // the new one
		r.must(r.Remove(ctx, ann))
		for range 30 { // Ten TTLs.
			missing, err := r.Renew(ctx, ann)
			r.must(err)
			r.must(r.Add(ctx, missing))
			r.passSwept(20 * time.Minute)
		}
		r.is("ann", presence.Offline)
		r.saysOf("ann", "+-")
		r.must(r.Add(ctx, tab))
		r.saysOf("ann", "+-+")
		r.must(r.Remove(ctx, tab))
		r.passSwept(5 * time.Hour)
		r.must(r.Add(ctx, []presence.Lease{lease("bob", "1", "")}))
		r.must(r.Remove(ctx, []presence.Lease{lease("ann", "3", "")}))
		if n := r.raw.ZCard(ctx, r.keys[presence.ShardOf("ann")].gone).Val(); n != 1 {
			t.Errorf("%d connections that ended are remembered", n)
		}
	})
}

// What one user costs is bounded: further connections are not counted until others end.
func TestConnectionsOfOneUserAreBounded(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx, r := t.Context(), r.settled()
		all := make([]presence.Lease, 1000)
		for i := range all {
			all[i] = lease("ann", fmt.Sprintf("p-%032x", i), "a room")
		}
		for part := range slices.Chunk(all, 100) { // all at once is more than an interpreted script does in the limit of a call
			r.must(r.Add(ctx, part))
		}
		keys := r.keys[presence.ShardOf("ann")]
		size := len(r.raw.HGet(ctx, keys.users, "ann").Val())
		counted := r.ask("ann").Connections
		if size > 33<<10 || counted < 500 || counted == len(all) || int64(counted) != r.raw.ZCard(ctx, keys.leases).Val() {
			t.Errorf("%d connections are counted in %d bytes", counted, size)
		}
		r.must(r.Remove(ctx, all[:200]))
		missing, err := r.Renew(ctx, all[200:])
		r.must(err)
		r.must(r.Add(ctx, missing))
		if got := r.ask("ann").Connections; got != counted {
			t.Errorf("%d connections are counted after some ended, want %d", got, counted)
		}
		r.must(r.Remove(ctx, all))
		r.is("ann", presence.Offline)
		r.saysOf("ann", "+-")
	})
}

// Who reads the log later sees each change once, in order; who comes too late, or to another memory, is told.
func TestFollowTheLog(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		ctx, r := t.Context(), r.settled()
		var at [presence.Shards]presence.Cursor
		shard := presence.ShardOf("ann")
		follow := func() presence.Diff {
			t.Helper()
			diffs, err := r.Follow(ctx, at)
			r.must(err)
			at[shard] = diffs[shard].Next
			return diffs[shard]
		}
		if !follow().Gap || follow().Gap {
			t.Error("a first cursor is no gap, or a present one is")
		}
		r.must(r.Add(ctx, []presence.Lease{lease("ann", "1", "")}))
		r.must(r.Remove(ctx, []presence.Lease{lease("ann", "1", "")}))
		if diff := follow(); diff.Gap || len(diff.Changes) != 2 || !diff.Changes[0].Online || diff.Changes[1].Online || diff.Changes[1].User != "ann" {
			t.Errorf("the log says %+v", diff)
		}
		if diff := follow(); diff.Gap || len(diff.Changes) != 0 {
			t.Errorf("the log says %+v twice", diff)
		}
		r.fill(shard, 4100)
		r.must(r.Add(ctx, []presence.Lease{lease("ann", "2", "")}))
		r.must(r.Remove(ctx, []presence.Lease{lease("ann", "2", "")}))
		if diff := follow(); !diff.Gap {
			t.Errorf("4100 changes are read from a log of 4000: %d", len(diff.Changes))
		}
		r.must(r.raw.Del(ctx, r.keys[shard].head).Err())
		r.must(r.Add(ctx, []presence.Lease{lease("ann", "3", "")}))
		if !follow().Gap {
			t.Error("another memory is no gap")
		}
	})
}

func TestListOfUsers(t *testing.T) {
	onEachPresence(t, func(t *testing.T, r presenceRig) {
		var all []presence.Lease
		for i := 0; len(all) < 700; i++ { // More than one reply holds, in one shard, and some in others.
			if name := "user " + strconv.Itoa(i); i < 100 || presence.ShardOf(name) == 0 {
				all = append(all, lease(name, "1", "r"))
			}
		}
		r.must(r.Add(t.Context(), all))
		found := make(map[string]bool)
		for page, pages := uint64(0), 0; ; pages++ {
			users, next, err := r.List(t.Context(), page)
			r.must(err)
			for _, u := range users {
				found[u.User] = u.State == presence.Online && len(u.Rooms) == 1
			}
			if page = next; page == 0 {
				break
			} else if pages > 1000 {
				t.Fatal("the listing does not end")
			}
		}
		if len(found) != len(all) || slices.Contains(slices.Collect(maps.Values(found)), false) {
			t.Errorf("%d users are listed, want %d", len(found), len(all))
		}
		if n, err := r.Count(t.Context()); n != int64(len(all)) || err != nil {
			t.Errorf("%d users are counted, %v", n, err)
		}
	})
}

// What was last seen is bounded in number and age, the log in length.
func TestMemoryOfPresenceIsBounded(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, r := t.Context(), newPresenceRig(t, server)
		ann := []presence.Lease{lease("ann", "1", "")}
		keys := r.keys[presence.ShardOf("ann")]
		r.must(r.Add(ctx, ann))
		r.fill(presence.ShardOf("ann"), 12_500)
		r.must(r.Remove(ctx, ann))
		seen, log := r.raw.ZCard(ctx, keys.seen).Val(), r.raw.LLen(ctx, keys.log).Val()
		if seen != 12_000 || log != 4000 {
			t.Errorf("%d users are remembered, and %d changes", seen, log)
		}
		if r.ask("ann").LastSeen.IsZero() {
			t.Error("who left last is not remembered")
		}
		r.pass(31 * 24 * time.Hour)
		again := []presence.Lease{lease("ann", "2", "")}
		r.must(r.Add(ctx, again))
		r.must(r.Remove(ctx, again))
		if seen := r.raw.ZCard(ctx, keys.seen).Val(); seen != 1 {
			t.Errorf("%d users are remembered after a month", seen)
		}
	})
}

func TestPresenceCallsAreOnePipeline(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, r := t.Context(), newPresenceRig(t, server).settled()
		var all []presence.Lease
		for i := range 800 {
			all = append(all, lease(strconv.Itoa(i), "1", "r"))
		}
		for name, call := range map[string]func() error{
			"add":    func() error { return r.Add(ctx, all) },
			"renew":  func() error { _, err := r.Renew(ctx, all); return err },
			"sweep":  func() error { return r.Sweep(ctx) },
			"ask":    func() error { _, err := r.Ask(ctx, []string{"1", "2", "3"}); return err },
			"count":  func() error { _, err := r.Count(ctx); return err },
			"follow": func() error { _, err := r.Follow(ctx, [presence.Shards]presence.Cursor{}); return err },
		} {
			before := r.store.RoundTrips()
			r.must(call())
			want := uint64(1)
			if name == "sweep" {
				want = 2
			}
			if trips := r.store.RoundTrips() - before; trips != want {
				t.Errorf("%s takes %d round trips", name, trips)
			}
		}
	})
}

// The shards divide the hash slots, so no master of a Redis Cluster has more than its part.
func TestShardsDivideTheSlots(t *testing.T) {
	r := open(t, storetest.Server{URL: "redis://127.0.0.1:1"}).Presence(slowly())
	for shard, keys := range r.keys {
		tag := keys.head[len("holdfast:presence:{"):]
		slot := slotOf(tag[:len(tag)-len("}:head")])
		if slot*presence.Shards/slotCount != shard {
			t.Errorf("shard %d lies in slot %d", shard, slot)
		}
	}
	sizes := make(map[presence.Shard]int)
	for i := range 64_000 {
		sizes[presence.ShardOf("user-"+strconv.Itoa(i))]++
	}
	if most := slices.Max(slices.Collect(maps.Values(sizes))); len(sizes) != presence.Shards || most > 4500 {
		t.Errorf("of 64,000 users %d are in one of %d shards", most, len(sizes))
	}
}

// Of three masters each has its part of the users, and so of the heartbeats.
func TestMastersSharePresence(t *testing.T) {
	r := newPresenceRig(t, storetest.StartCluster(t).Server)
	cluster, ok := r.raw.(*redis.ClusterClient)
	if !ok {
		t.Fatalf("a cluster's client is a %T", r.raw)
	}
	all := make([]presence.Lease, 6000)
	for i := range all {
		all[i] = lease("user-"+strconv.Itoa(i), "1", "r")
	}
	r.must(r.Add(t.Context(), all))
	share := make(map[string]int64)
	for _, keys := range r.keys {
		master, err := cluster.MasterForKey(t.Context(), keys.users)
		r.must(err)
		share[master.Options().Addr] += r.raw.HLen(t.Context(), keys.users).Val()
	}
	if most := slices.Max(slices.Collect(maps.Values(share))); len(share) != 3 || most > 2700 { // six of 16 shards are 2250
		t.Errorf("6,000 users lie so: %v", share)
	}
	t.Log(share)
}

func TestPresenceWithoutAStore(t *testing.T) {
	fleet := storetest.StartAlone(t)
	r := newPresenceRig(t, fleet.Server)
	r.must(r.Add(t.Context(), []presence.Lease{lease("ann", "1", "")}))
	fleet.Processes[0].Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	missing, renewed := r.Renew(ctx, []presence.Lease{lease("ann", "1", "")})
	found, asked := r.Ask(ctx, []string{"ann"})
	diffs, followed := r.Follow(ctx, [presence.Shards]presence.Cursor{})
	if cmp.Or(renewed, asked, followed) == nil || r.Sweep(ctx) == nil || r.Add(ctx, missing) != nil {
		t.Error("a store that is dead answers")
	}
	if len(missing)+len(found)+len(diffs) > 0 {
		t.Errorf("a store that is dead says %v, %v, %v", missing, found, diffs)
	}
	fleet.Processes[0].Restart(t)
	testkit.Eventually(t, "leases to be missed", func() bool {
		missing, err := r.Renew(ctx, []presence.Lease{lease("ann", "1", "")})
		return err == nil && len(missing) == 1
	})
}

func FuzzPresenceLines(f *testing.F) {
	for _, line := range []string{"+1769000000000 ann", "-1 a b", "1769000000000\n1\troom\n2\t", "1\n", "", "+ ann", "1e12\n1\tx"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if c, err := readChange(line); err == nil && (c.User == "" || c.At.IsZero() || line[0] == '+' != c.Online) {
			t.Errorf("%q is read as %+v", line, c)
		}
		if s, err := readStatus("ann", line); err == nil && (s.Connections == 0 || s.Since.IsZero() || len(s.Rooms) > s.Connections) {
			t.Errorf("%q is read as %+v", line, s)
		}
	})
}
