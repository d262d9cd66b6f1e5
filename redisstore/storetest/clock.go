package storetest

import (
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/fakeclock"
	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// Clock is a store's, which a test sets. The embedded store's stands still in between.
type Clock struct {
	ahead time.Duration
	set   func(t testing.TB, by time.Duration)
}

// Set has the clock so far ahead of where it began; keys expire by it.
func (c *Clock) Set(t testing.TB, ahead time.Duration) {
	t.Helper()
	by := ahead - c.ahead
	c.ahead = ahead
	c.set(t, by)
}

// Pass lets time pass.
func (c *Clock) Pass(t testing.TB, d time.Duration) { t.Helper(); c.Set(t, c.ahead+d) }

// StartWithClock is Start with a clock to set.
func StartWithClock(t testing.TB, kind string) (Server, *Clock) {
	t.Helper()
	clock := &Clock{}
	if kind == "redis" {
		library, err := fakeclock.Build(t.TempDir(), tool.Find(t, "gcc"))
		if err != nil {
			t.Fatal(err)
		}
		clock.set = func(t testing.TB, _ time.Duration) {
			t.Helper()
			if err := library.Set(clock.ahead); err != nil {
				t.Fatal(err)
			}
		}
		fleet := aloneIn(t, nil, append(os.Environ(), library.Env()...))
		fleet.URL += patience
		return fleet.Server, clock
	}
	store, began := miniredis.RunT(t), time.Now()
	store.SetTime(began)
	clock.set = func(_ testing.TB, by time.Duration) {
		store.SetTime(began.Add(clock.ahead))
		store.FastForward(by)
	}
	raw := redis.NewClient(&redis.Options{Addr: store.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Server{Name: kind, URL: "redis://" + store.Addr() + patience, Raw: raw}, clock
}

// OnEachClock is OnEach with a clock to set.
func OnEachClock(t *testing.T, test func(t *testing.T, server Server, clock *Clock)) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			server, clock := StartWithClock(t, kind)
			test(t, server, clock)
		})
	}
}
