package redisstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) {
	if testkit.Race {
		_ = flag.Set("rapid.checks", "25") // A flag of the command line wins.
	}
	goleak.VerifyTestMain(m)
}

// open returns a store on server.
func open(t testing.TB, server storetest.Server) *Store {
	t.Helper()
	store, err := Open(server.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// back is storetest.Back for a Redis.
type back struct {
	t      testing.TB
	server storetest.Server
}

func (b back) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b back) Damage(room ring.RoomID, text string) {
	b.check(b.server.Raw.Set(b.t.Context(), pinKey(room), text, 0).Err())
}

func (b back) Misuse(room ring.RoomID) {
	b.check(b.server.Raw.LPush(b.t.Context(), pinKey(room), "x").Err())
}

func (b back) Lose(room ring.RoomID) { b.check(b.server.Raw.Del(b.t.Context(), pinKey(room)).Err()) }

func (b back) Shorten(room ring.RoomID, to time.Duration) {
	b.check(b.server.Raw.Expire(b.t.Context(), pinKey(room), to).Err())
}

func (b back) TimeLeft(room ring.RoomID) time.Duration {
	left, err := b.server.Raw.TTL(b.t.Context(), pinKey(room)).Result()
	b.check(err)
	return left
}

func TestContract(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		storetest.Contract(t, open(t, patient(server)), back{t, server})
	})
}

// always has every pin prolonged.
func always(pin.Holding) bool { return true }

func TestEveryCallIsOneRoundTrip(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store, a, b := t.Context(), open(t, patient(server)), storetest.At("a", 1000, 1), storetest.At("b", 1001, 2)
		held := []pin.Holding{{Room: "r", Pin: b}, {Room: "s", Pin: b}}
		for _, call := range []struct {
			name string
			want uint64
			do   func() error
		}{
			{"claim of a new room", 1, func() error { _, _, err := store.Claim(ctx, "r", a, ""); return err }},
			{"claim of a pinned room", 1, func() error { _, _, err := store.Claim(ctx, "r", b, ""); return err }},
			{"swap", 1, func() error { _, _, err := store.Swap(ctx, "r", a, b, ""); return err }},
			{"remove of what does not stand", 1, func() error { _, err := store.Remove(ctx, "r", a); return err }},
			{"get", 1, func() error { _, _, err := store.Get(ctx, "r"); return err }},
			{"prolong", 1, func() error { _, err := store.Prolong(ctx, "r"); return err }},
			{"refresh with a missing pin", 2, func() error { _, err := store.Refresh(ctx, held, always); return err }},
			{"refresh", 1, func() error { _, err := store.Refresh(ctx, held, always); return err }},
		} {
			before := store.RoundTrips()
			if err := call.do(); err != nil {
				t.Fatalf("%s: %v", call.name, err)
			}
			if got := store.RoundTrips() - before; got != call.want {
				t.Errorf("%s took %d round trips, want %d", call.name, got, call.want)
			}
		}
	})
}

func TestScanFindsEveryPin(t *testing.T) {
	t.Parallel() // most of it is waiting
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		want := make(map[ring.RoomID]pin.Pin)
		for i := range 1500 { // more than one SCAN step
			room := ring.RoomID(fmt.Sprintf("room {%d} %%7B*?[a]", i))
			p := storetest.At("a", 1000, uint64(i))
			if _, _, err := store.Claim(ctx, room, p, ""); err != nil {
				t.Fatal(err)
			}
			want[room] = p
		}
		back{t, server}.Damage("damaged", "garbage")
		if err := server.Raw.Set(ctx, "holdfast:room:{%zz}:node", "foreign", 0).Err(); err != nil {
			t.Fatal(err)
		}
		got := make(map[ring.RoomID]pin.Pin)
		err := store.AllPins(ctx, func(h pin.Holding) error { got[h.Room] = h.Pin; return nil })
		if err != nil || len(got) != len(want) {
			t.Fatalf("AllPins visited %d rooms, %v, want %d", len(got), err, len(want))
		}
		for room, p := range want {
			if got[room] != p {
				t.Fatalf("room %q: %v, want %v", room, got[room], p)
			}
		}
		stop := errors.New("stop")
		if err := store.AllPins(ctx, func(pin.Holding) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("AllPins = %v, want what visit returned", err)
		}
	})
}

func TestSilentStoreIsGivenUpInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // It accepts and never answers.
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	store := open(t, storetest.Server{URL: "redis://" + listener.Addr().String()})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := store.Claim(ctx, "r", storetest.At("a", 1000, 1), ""); err == nil {
		t.Error("a silent store answered")
	}
	if took := time.Since(began); took > 3*time.Second { // 300 ms; go-redis's defaults would take 20 s
		t.Errorf("a silent store was waited for %v", took)
	}
}

// A store that is restarted is used again soon, however often it was asked in vain: go-redis stops
// dialing after as many failures as it has connections.
func TestStoreThatComesBackIsUsedAgain(t *testing.T) {
	t.Parallel() // most of it is waiting
	embedded := miniredis.RunT(t)
	store := open(t, storetest.Server{URL: "redis://" + embedded.Addr()})
	p := storetest.At("a", 1000, 1)
	if _, _, err := store.Claim(t.Context(), "r", p, ""); err != nil {
		t.Fatal(err)
	}
	embedded.Close()
	for range 100 {
		if _, _, err := store.Get(t.Context(), "r"); err == nil {
			t.Fatal("a store that is down answered")
		}
	}
	if err := embedded.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "store to be used again", func() bool {
		got, _, err := store.Get(t.Context(), "r")
		return err == nil && got == p
	})
}

func TestOpenKeepsThePasswordToItself(t *testing.T) {
	for _, url := range []string{"redis://user:s3cret@ho st:1/", "http://user:s3cret@host/", "redis://user:s3cret@host:port", "::s3cret"} {
		_, err := Open(url, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("Open(%q) succeeded", url)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%q) = %v, which holds the password", url, err)
		}
	}
}
