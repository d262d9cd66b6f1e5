package redisstore

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Two clusters on one store have a room of one name each, and neither sees, moves, removes or forgets what is the other's.
func TestClustersOnOneStoreDoNotMeet(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, stores := t.Context(), map[string]*Store{}
		for _, name := range []string{"blue", "red"} {
			store, err := OpenAs(patient(server).URL, name, panics.New(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			stores[name] = store
			p := storetest.At(name, 1000, 1)
			if won, _, err := store.Claim(ctx, "standup", p, ""); won != p || err != nil {
				t.Fatalf("%s claims %v, %v", name, won, err)
			}
			present(t, store)
		}
		blue, red := storetest.At("blue", 1000, 1), storetest.At("red", 1000, 1)
		if removed, err := stores["blue"].Remove(ctx, "standup", red); removed || err != nil {
			t.Errorf("Remove of the other's pin = %v, %v", removed, err)
		}
		if now, _, err := stores["blue"].Swap(ctx, "standup", red, storetest.At("blue", 1001, 2), ""); now != blue || err != nil {
			t.Errorf("Swap of the other's pin = %v, %v", now, err)
		}
		for name, store := range stores {
			var seen []pin.Holding
			err := store.AllPins(ctx, func(h pin.Holding) error { seen = append(seen, h); return nil })
			if want := (pin.Holding{Room: ring.RoomID("standup"), Pin: storetest.At(name, 1000, 1)}); err != nil || len(seen) != 1 || seen[0] != want {
				t.Errorf("AllPins of %s = %v, %v", name, seen, err)
			}
		}
		if present(t, stores["blue"]) == present(t, stores["red"]) {
			t.Error("both clusters have one marker")
		}
	})
}

func TestNamesOfClusters(t *testing.T) {
	for name, good := range map[string]bool{
		"holdfast": true, "dev-1_2": true, "": false, "Blue": false, "a:b": false, "{a}": false, "a*": false, "a b": false, strings.Repeat("a", 33): false,
	} {
		if _, err := OpenAs("redis://127.0.0.1:1", name, panics.New(), slog.New(slog.DiscardHandler)); (err == nil) != good {
			t.Errorf("OpenAs for %q: %v", name, err)
		}
	}
}

// A server that may evict keys is said in the log, once, without CONFIG.
func TestEvictionIsWarnedOf(t *testing.T) {
	fleet := storetest.StartAlone(t)
	ctx := t.Context()
	for _, policy := range []string{"noeviction", "allkeys-lru"} {
		if err := fleet.Raw.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		store, err := Open(patient(fleet.Server).URL, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Ping(ctx); err != nil {
			t.Fatal(err)
		}
		_ = store.Close()
		if warned := strings.Contains(said.String(), "policy=allkeys-lru"); warned != (policy != "noeviction") {
			t.Errorf("with %s the log says %q", policy, said.String())
		}
	}
}

// The documented rights suffice, and a user without INFO is told of in the log, once.
func TestAMissingRightIsWarnedOf(t *testing.T) {
	fleet := storetest.StartAlone(t)
	ctx := t.Context()
	for rights, warns := range map[string]bool{"+@all -@dangerous": true, "+@all -@dangerous +info": false} {
		user := append([]any{"ACL", "SETUSER", "holdfast", "reset", "on", ">password", "~holdfast:*"}, anys(strings.Fields(rights))...)
		if err := fleet.Raw.Do(ctx, user...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := fleet.Raw.Do(ctx, "ACL", "LOG", "RESET").Err(); err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(patient(fleet.Server).URL)
		if err != nil {
			t.Fatal(err)
		}
		at.User = url.UserPassword("holdfast", "password")
		var said bytes.Buffer
		store, err := Open(at.String(), slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		a := storetest.At("a", 1000, 1)
		if _, _, err := store.Claim(ctx, "r", a, ""); err != nil {
			t.Errorf("%s: claim: %v", rights, err)
		}
		store.warm(ctx)
		if _, err := store.Incarnations(ctx); err != nil {
			t.Errorf("%s: incarnations: %v", rights, err)
		}
		_ = store.Close()
		want := 0
		if warns {
			want = 1
		}
		if n := strings.Count(said.String(), "may not run INFO"); n != want {
			t.Errorf("%s: the log says it %d times, want %d: %s", rights, n, want, said.String())
		}
		refused, err := fleet.Raw.Do(ctx, "ACL", "LOG").Slice()
		if err != nil || (len(refused) > 0) != warns {
			t.Errorf("%s: the store refused %v, %v", rights, refused, err)
		}
	}
}

func anys(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}
