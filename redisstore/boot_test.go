package redisstore

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestALaterBootIsLater, whatever the clocks of the machine and the store say, and also after somebody else wrote the key.
func TestALaterBootIsLater(t *testing.T) {
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		s, now := open(t, server), time.Now()
		var last time.Time
		begin := func(name string, machine time.Time) time.Time {
			t.Helper()
			began, err := s.BeginBoot(t.Context(), name, machine)
			if err != nil {
				t.Fatal(err)
			}
			return began
		}
		later := func(what string, machine time.Time) {
			t.Helper()
			began := begin("sfu/one", machine)
			if !began.After(last) {
				t.Errorf("%s: the boot began at %v, the one before it at %v", what, began, last)
			}
			last = began
		}
		later("at first", now)
		later("with the machine's clock ahead", now.Add(24*time.Hour))
		later("and right again", now)
		later("in 1970", time.UnixMilli(5))
		clock.Set(t, 23*time.Hour) // the key has not expired
		later("23 hours later", now)
		clock.Set(t, 24*time.Hour+bootKept+time.Minute) // it has
		later("long after", now)
		clock.Set(t, 25*time.Hour)
		later("when the store's clock was set back", now)
		if err := server.Raw.Del(t.Context(), s.keys.boot("sfu/one")).Err(); err != nil {
			t.Fatal(err)
		}
		if err := server.Raw.LPush(t.Context(), s.keys.boot("sfu/one"), "x").Err(); err != nil {
			t.Fatal(err)
		}
		if began := begin("sfu/one", now); began.Before(now.Truncate(time.Millisecond)) {
			t.Errorf("after damage the boot began at %v", began)
		}
		if began := begin("sfu/two", now); !began.Before(last) {
			t.Errorf("the boot of another node began at %v, like that of the first", began)
		}
	})
}
