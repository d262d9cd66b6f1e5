package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// A server that left the Cluster has no say in epochs, and is pinged no more; one that comes back is as before.
func TestAServerThatLeftTheClusterIsForgotten(t *testing.T) {
	store := open(t, storetest.Server{URL: "redis+cluster://a:1"})
	add := func(address string, ahead time.Duration) *master {
		options := &redis.Options{Addr: address}
		m := store.addMaster(options, func() *redis.Client { return redis.NewClient(options) })
		t.Cleanup(func() { _ = m.client.Close() })
		m.clock.learn(time.Now().Add(ahead).UnixMicro())
		return m
	}
	stays, leaves := add("a:1", 0), add("b:1", time.Hour)
	whole := []redis.ClusterSlot{
		{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "a:1"}}},
		{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "b:1"}}},
	}
	want := func(when string, ahead time.Duration, all ...*master) {
		t.Helper()
		if off := (time.Until(store.Now()) - ahead).Abs(); off > time.Minute {
			t.Errorf("%s: the store's time is off by %v", when, off)
		}
		got := store.masters.all()
		if len(got) != len(all) || slices.ContainsFunc(all, func(m *master) bool { return !slices.Contains(got, m) || m.marker.Load() == nil }) {
			t.Errorf("%s: %d servers are cared for, want %d with markers", when, len(got), len(all))
		}
	}
	store.relocate(whole)
	want("both are there", time.Hour, stays, leaves)
	store.relocate([]redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "a:1"}}}})
	want("one left", 0, stays)
	store.relocate(whole)
	want("it is back", time.Hour, stays, leaves)
}

// While a Cluster is resharded, whole ranges of slots change their master one after another. Hardly any of these moves may give a
// master another marker: in the incarnation that begins with it no owner is synced yet.
func TestReshardingLeavesMarkersWhereTheyAre(t *testing.T) {
	store := open(t, storetest.Server{URL: "redis+cluster://a:1"})
	var all []*master
	for _, address := range []string{"a:1", "b:1", "c:1"} {
		options := &redis.Options{Addr: address}
		m := store.addMaster(options, func() *redis.Client { return redis.NewClient(options) })
		t.Cleanup(func() { _ = m.client.Close() })
		all = append(all, m)
	}
	const firstOfB, firstOfC, moved, atOnce = slotCount / 3, 2 * slotCount / 3, 2000, 50
	changes := 0
	var before [3]string
	for n := 0; n < moved; n += atOnce { // the lowest slots of b go to a, and of c to b
		store.relocate([]redis.ClusterSlot{
			{Start: 0, End: firstOfB + n - 1, Nodes: []redis.ClusterNode{{Addr: "a:1"}}},
			{Start: firstOfB + n, End: firstOfC + n - 1, Nodes: []redis.ClusterNode{{Addr: "b:1"}}},
			{Start: firstOfC + n, End: slotCount - 1, Nodes: []redis.ClusterNode{{Addr: "c:1"}}},
		})
		for i, m := range all {
			if key := *m.marker.Load(); key != before[i] && n > 0 {
				changes++
			}
			before[i] = *m.marker.Load()
		}
	}
	if changes > 6 {
		t.Errorf("%d moves of slots gave masters another marker %d times", moved/atOnce, changes)
	}
}
