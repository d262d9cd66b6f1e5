package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffDoubles(t *testing.T) {
	b := Backoff{First: time.Second, Most: 3 * time.Second}
	for i, want := range []time.Duration{1, 2, 3, 3} {
		if got := b.Next(); got != want*time.Second {
			t.Fatalf("pause %d is %s, want %d s", i, got, want)
		}
	}
	if b.Reset(); b.Next() != time.Second {
		t.Fatal("after Reset it does not begin at First")
	}
}

func TestJitterStaysWithinAQuarter(t *testing.T) {
	for range 1000 {
		if got := Jitter(time.Second); got < 750*time.Millisecond || got > 1250*time.Millisecond {
			t.Fatalf("jitter made %s of a second", got)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if !Sleep(ctx, time.Second) || time.Since(began) != time.Second {
			t.Fatalf("slept for %s, want a second", time.Since(began))
		}
		if Sleep(ctx, time.Minute) || time.Since(began) != 2*time.Second {
			t.Fatalf("the context ended it after %s, want 2 s in all", time.Since(began))
		}
		if Sleep(ctx, 0) || !Sleep(t.Context(), 0) {
			t.Fatal("no pause, and not the context's state")
		}
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, calls := time.Now(), 0
		Every(ctx, time.Minute, func() {
			if calls++; calls == 3 {
				cancel()
			}
		})
		if waited := time.Since(began); calls != 3 || waited != 3*time.Minute {
			t.Errorf("%d calls in %v, want 3 in 3m", calls, waited)
		}
	})
}
