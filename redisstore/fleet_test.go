package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// patient gives a store on a busy test machine more time than a join has.
func patient(server storetest.Server) storetest.Server {
	mark := "?"
	if strings.Contains(server.URL, "?") {
		mark = "&"
	}
	server.URL += mark + "dial_timeout=5s&read_timeout=5s&write_timeout=5s&pool_timeout=5s"
	return server
}

func TestSetsKeepTheContract(t *testing.T) {
	t.Parallel() // most of it is waiting
	for name, start := range map[string]func(testing.TB) storetest.Fleet{
		"socket": storetest.StartSocket, "sentinel": storetest.StartSentinel, "cluster": storetest.StartCluster,
		"TLS": storetest.StartAloneTLS, "sentinel, TLS": storetest.StartSentinelTLS, "cluster, TLS": storetest.StartClusterTLS,
	} {
		t.Run(name, func(t *testing.T) {
			fleet := start(t)
			storetest.Contract(t, open(t, patient(fleet.Server)), back{t, fleet.Server})
		})
	}
}

// present returns the incarnations that a client sees.
func present(t *testing.T, store *Store) pin.Incarnations {
	t.Helper()
	var set pin.Incarnations
	testkit.Eventually(t, "incarnations to be known", func() bool {
		all, err := store.Incarnations(t.Context())
		set = pin.IncarnationsOf(all)
		return err == nil && set != ""
	})
	return set
}

// A memory that was lost, however that came about, is another incarnation, for every client alike; and
// nothing else begins one.
func TestEveryLossBeginsAIncarnation(t *testing.T) {
	fleet := storetest.StartAlone(t)
	one, two := open(t, patient(fleet.Server)), open(t, patient(fleet.Server))
	ctx, before := t.Context(), present(t, one)
	if present(t, two) != before {
		t.Fatal("two clients see two incarnations of one store")
	}
	for name, lose := range map[string]func(){
		"flushed":    func() { fleet.Raw.FlushAll(ctx) },
		"restarted":  func() { fleet.Processes[0].Kill(t); fleet.Processes[0].Restart(t) },
		"damaged":    func() { fleet.Raw.Set(ctx, markerKey, "garbage", 0) },
		"wrong type": func() { fleet.Raw.Del(ctx, markerKey); fleet.Raw.LPush(ctx, markerKey, "x") },
		"another process's, as after a failover": func() {
			fleet.Raw.Set(ctx, markerKey, strings.Repeat("0", 40)+".0000000000000001", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := present(t, one)
			lose()
			// The claim that comes first is in no known incarnation, never in the old one.
			var in pin.Incarnation
			room := ring.RoomID("after " + name)
			testkit.Eventually(t, "claim", func() (ok bool) {
				var err error
				_, in, err = two.Claim(t.Context(), room, storetest.At("a", 1000, 1), "")
				return err == nil
			})
			if before.Has(in) {
				t.Errorf("a claim after the loss is in incarnation %x of before", in)
			}
			after := present(t, one)
			if after == before || present(t, two) != after || present(t, open(t, patient(fleet.Server))) != after {
				t.Errorf("incarnations %x became %x", before.All(), after.All())
			}
			if _, in, err := two.Claim(t.Context(), room, storetest.At("b", 2000, 1), ""); err != nil || !after.Has(in) {
				t.Errorf("a later claim is in incarnation %x, %v, want %x", in, err, after.All())
			}
		})
	}
}

// The master of a Sentinel set is killed: the replica takes over with the old marker, and a new
// incarnation begins all the same, for it may have missed the last writes.
func TestSentinelFailoverBeginsAIncarnation(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartSentinel(t)
	store := open(t, patient(fleet.Server))
	before, p := present(t, store), storetest.At("a", 1000, 1)
	if _, _, err := store.Claim(t.Context(), "kept", p, ""); err != nil {
		t.Fatal(err)
	}
	if n := fleet.Raw.Do(t.Context(), "wait", 2, 10_000).Val(); n != int64(2) {
		t.Fatalf("%v replicas have the pin", n)
	}
	// Any one Sentinel may freeze, the one that the client asked last too, and the client's connections break.
	joins := open(t, fleet.Server)
	for i, frozen := range fleet.Sentinels {
		claimSoon(t, "a claim", joins)
		frozen.Freeze(t)
		for _, kind := range []string{"normal", "pubsub"} {
			if err := fleet.Raw.Do(t.Context(), "client", "kill", "type", kind, "skipme", "yes").Err(); err != nil {
				t.Fatal(err)
			}
		}
		claimSoon(t, fmt.Sprintf("a claim while Sentinel %d is frozen", i), joins)
		frozen.Thaw(t)
	}
	fleet.Processes[0].Kill(t)
	patience := time.After(time.Minute)
	for {
		got, in, err := store.Claim(t.Context(), "kept", storetest.At("b", 2000, 2), "")
		if err == nil {
			if got != p || before.Has(in) {
				t.Errorf("after the failover %v stands, in incarnation %x of before %x", got, in, before.All())
			}
			break
		}
		select {
		case <-patience:
			t.Fatalf("no failover in a minute: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if after := present(t, store); after == before {
		t.Errorf("incarnation %x outlived its master", after.All())
	}
}

// One of three masters is killed: the others' rooms are claimed as before, its own are refused until it is back,
// and then in another incarnation.
func TestClusterLosesASlotOwner(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	store := open(t, patient(fleet.Server))
	before := present(t, store)
	if len(before.All()) != 3 {
		t.Fatalf("incarnations %x, want one of each master", before.All())
	}
	in := make(map[ring.RoomID]pin.Incarnation)
	for i := range 60 {
		room := ring.RoomID(fmt.Sprintf("room-%d", i))
		_, g, err := store.Claim(t.Context(), room, storetest.At("a", 1000, 1), "")
		if err != nil || !before.Has(g) {
			t.Fatalf("claim in incarnation %x, %v", g, err)
		}
		in[room] = g
	}
	victim := in["room-0"]
	client, err := store.masterOf(t.Context(), "room-0")
	if err != nil {
		t.Fatal(err)
	}
	address := client.client.Options().Addr
	dead := fleet.Processes[slices.IndexFunc(fleet.Processes, func(p *storetest.Process) bool { return p.Address == address })]
	dead.Kill(t)
	for room, g := range in {
		got, now, err := store.Claim(t.Context(), room, storetest.At("b", 2000, 2), "")
		switch {
		case g == victim && err == nil:
			t.Errorf("room %s of the dead master was answered %v", room, got)
		case g != victim && (err != nil || got != storetest.At("a", 1000, 1) || now != g):
			t.Errorf("room %s of a live master: %v in %x, %v", room, got, now, err)
		}
	}
	if all, err := store.Incarnations(t.Context()); err == nil || len(all) != 2 {
		t.Errorf("incarnations %x, %v, want two and an error", all, err)
	}
	var held []pin.Holding
	for room := range in {
		held = append(held, pin.Holding{Room: room, Pin: storetest.At("a", 1000, 1)})
	}
	found, err := store.Refresh(t.Context(), held, func(pin.Holding) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if g := in[f.Room]; g == victim && !errors.Is(f.Err, pin.ErrUnreachable) || g != victim && (f.Err != nil || !f.Prolonged) {
			t.Errorf("room %s in %x is refreshed: %+v, the dead master is %x", f.Room, g, f, victim)
		}
	}
	dead.Restart(t)
	testkit.Eventually(t, "dead master to be used again", func() bool {
		_, g, err := store.Claim(t.Context(), "room-0", storetest.At("c", 3000, 3), "")
		if err == nil && before.Has(g) {
			t.Fatalf("an empty master is in incarnation %x of before", g)
		}
		return err == nil
	})
	testkit.Eventually(t, "three incarnations", func() bool {
		all, err := store.Incarnations(t.Context())
		after := pin.IncarnationsOf(all)
		return err == nil && len(after.All()) == 3 && !after.Has(victim)
	})
}

// A slot moves to a master, whose marker then lies elsewhere: a signaling node, which asks for nothing but claims, follows the owners to
// the new one, though it still finds the old.
func TestClusterMovesASlot(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	owner, client := open(t, patient(fleet.Server)), open(t, patient(fleet.Server))
	ended := make(chan error, 1)
	go func() { ended <- client.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	const room = "room-0" // It lies on the second master.
	before := present(t, owner)
	claimed := func() bool {
		_, in, err := client.Claim(t.Context(), room, storetest.At("a", 1000, 1), "")
		return err == nil && present(t, owner).Has(in)
	}
	testkit.Eventually(t, "claim to be in an incarnation that the owners report", claimed)
	fleet.MoveSlot(t, precedes(t, owner, room), fleet.MasterOf(t, pinKey(room)))
	testkit.Eventually(t, "owners to see another incarnation", func() bool { return present(t, owner) != before })
	testkit.Eventually(t, "claim to be in an incarnation that the owners report, after the move", claimed)

	// The very first claim in a slot that moved is in an incarnation of its new master, or a room with a cap would be refused.
	to := fleet.MasterOf(t, pinKey(room))
	for n := range 1000 {
		next := ring.RoomID(fmt.Sprintf("next-%d", n))
		from, err := client.masterOf(t.Context(), next)
		if slot := slotOf(string(next)); err == nil && from.client.Options().Addr != to.Address && !hasMarkerIn(client, slot) {
			fleet.MoveSlot(t, slot, to)
			_, in, err := client.Claim(t.Context(), next, storetest.At("a", 1000, 1), "")
			if err != nil || in == 0 || !present(t, owner).Has(in) {
				t.Errorf("the first claim in a slot that moved is in incarnation %x, %v, want one of %x", in, err, present(t, owner).All())
			}
			return
		}
	}
	t.Error("no room lies on another master")
}

func hasMarkerIn(store *Store, slot int) bool {
	return slices.ContainsFunc(store.masters.all(), func(m *master) bool { return slotOfMarker(m) == slot })
}

func slotOfMarker(m *master) int {
	_, tag, _ := strings.Cut(strings.TrimSuffix(*m.marker.Load(), "}"), "{")
	return slotOf(tag)
}

// precedes is an empty slot of another master to which the marker of room's master goes when the slot comes there.
func precedes(t *testing.T, store *Store, room ring.RoomID) int {
	t.Helper()
	to, err := store.masterOf(t.Context(), room)
	if err != nil {
		t.Fatal(err)
	}
	for slot := range slotCount / 3 { // of the first master
		if !hasMarkerIn(store, slot) && markerRank(slot) < markerRank(slotOfMarker(to)) {
			return slot
		}
	}
	t.Fatal("every slot of the first master comes after the marker of the second")
	return 0
}

// The budget of a join holds for every kind of store that is silent or gone.
func TestEveryKindIsGivenUpInTime(t *testing.T) {
	t.Parallel() // most of it is waiting
	silent, refused := testkit.SilentAndRefused(t)
	for _, form := range []string{
		"redis://%s", "redis+sentinel://%s/house", "redis+cluster://%s", "rediss://%s", "rediss+sentinel://%s/house", "rediss+cluster://%s",
	} {
		for _, at := range []string{silent, refused} {
			store := open(t, storetest.Server{URL: fmt.Sprintf(form, at)})
			began := time.Now()
			for range 3 {
				if _, _, err := store.Claim(within(t, 300*time.Millisecond), "r", storetest.At("a", 1000, 1), ""); err == nil {
					t.Errorf("%s: nobody answered a claim", form)
				}
			}
			if took := time.Since(began); took > 6*time.Second { // 0.9 s
				t.Errorf("%s: waited %v for three claims", form, took)
			}
		}
	}
}

func TestAddressesAreRead(t *testing.T) {
	for url, want := range map[string]address{
		"redis://h:1/2": {hosts: []string{"h:1"}},
		"redis+sentinel://u:p%40ss@a:1,b/house?db=3":      {kind: kindSentinel, hosts: []string{"a:1", "b:26379"}, master: "house"},
		"rediss+cluster://:p@a:1,[::1]:2?dial_timeout=1s": {kind: kindCluster, hosts: []string{"a:1", "[::1]:2"}},
	} {
		got, err := parseAddress(url)
		if err != nil || got.kind != want.kind || !slices.Equal(got.hosts, want.hosts) || got.master != want.master {
			t.Errorf("parseAddress(%q) = %+v, %v, want %+v", url, got, err, want)
		}
		if secure := strings.HasPrefix(url, "rediss"); err == nil && secure != (got.options.TLSConfig != nil) {
			t.Errorf("%s: TLS is %v", url, got.options.TLSConfig)
		}
	}
	got, err := parseAddress("redis+sentinel://u:p%40ss@a:1/house?db=3&sentinel_password=other")
	if err != nil || got.options.Username != "u" || got.options.Password != "p@ss" || got.options.DB != 3 || got.sentinelOptions("a:1").Password != "other" {
		t.Errorf("credentials were read wrongly: %v", err)
	}
	for _, url := range []string{
		"", "redis+sentinel://u:s3cret@a:1", "redis+sentinel://u:s3cret@a:1,/house", "redis+tower://u:s3cret@a", "unix+sentinel://u:s3cret@a:1/house", "redis://u:s3cret@a:1,b:2",
		"redis+cluster://u:s3cret@a:x", "redis+cluster://u:s3%ZZcret@a", "redis+cluster://u:s3cret@a?what=s3cret",
	} {
		if _, err := Open(url, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("Open(%q) = %v, want an error without the password", url, err)
		}
	}
}

func FuzzMarker(f *testing.F) {
	f.Add("run", "run.0000000000000001")
	f.Add("run", "")
	f.Add("", ".x")
	f.Fuzz(func(t *testing.T, run, marker string) {
		m := &master{}
		if m.incarnationOf(marker, nil) != 0 {
			t.Fatal("a marker was believed before the process was known")
		}
		m.run.Store(&run)
		if known := m.incarnationOf(marker, nil) != 0; known != strings.HasPrefix(marker, run+".") {
			t.Fatalf("marker %q of process %q is believed: %v", marker, run, known)
		}
		if m.incarnationOf(marker, errors.New("x")) != 0 {
			t.Fatal("an error was believed")
		}
	})
}

func TestMarkersLieInTheirSlots(t *testing.T) {
	if slotOf("123456789") != 0x31c3 { // the reference value of CRC16/XMODEM
		t.Fatalf("slotOf = %#x", slotOf("123456789"))
	}
	for _, slot := range []int{0, 1, 5461, 16383} {
		_, tag, _ := strings.Cut(strings.TrimSuffix(keyspace(pin.DefaultCluster).markerIn(slot), "}"), "{")
		if slotOf(tag) != slot {
			t.Errorf("the marker of slot %d lies in %d", slot, slotOf(tag))
		}
	}
}

// within is a context with the time that a join has.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
