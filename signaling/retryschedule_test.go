package signaling

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestRetriesAreSpread(t *testing.T) {
	var all retrySchedule
	now := time.Now()
	last := time.Duration(0)
	for i := range 3000 {
		wait := all.take(now)
		switch {
		case wait < firstRetryAfter || wait > lastRetryAfter:
			t.Fatalf("turn %d comes in %v", i, wait)
		case wait != lastRetryAfter && i > 0 && wait != last+retryEvery:
			t.Fatalf("turn %d comes %v after the one before", i, wait-last)
		}
		last = wait
	}
	if last != lastRetryAfter {
		t.Errorf("the last of 3000 comes in %v", last)
	}
	if wait := all.take(now.Add(time.Minute)); wait != firstRetryAfter {
		t.Errorf("who waits alone comes in %v, want %v", wait, firstRetryAfter)
	}
}

// TestWhoWaitsForTheStoreIsNotHeldBack: asking again and again, as told, does not use up what an identity has of entries.
func TestWhoWaitsForTheStoreIsNotHeldBack(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	e := r.signalingNode(func(c *Config) { c.Limits.Entries = limits.Rate{PerSecond: 0.001, Burst: 1} })
	refuse := func(err error) {
		r.placer.mu.Lock()
		defer r.placer.mu.Unlock()
		r.placer.fail = err
	}
	refuse(orchestrator.ErrStoreUnavailable)
	for i := range 12 {
		ada := e.dial()
		ada.say(&wire.Join{Token: r.token("lobby", "Ada")})
		fault := hear[*wire.Error](ada)
		if told := time.Duration(fault.RetryAfterMs) * time.Millisecond; fault.Code != wire.CodeStoreUnavailable || told < firstRetryAfter || told > 300*time.Millisecond {
			t.Fatalf("try %d: heard %+v", i, fault)
		}
		ada.closed()
	}
	refuse(nil)
	r.placer.set("lobby", n.pin(firstEpoch))
	e.join("lobby", "Ada")
	again := e.dial()
	again.say(&wire.Join{Token: r.token("lobby", "Ada")})
	if fault := hear[*wire.Error](again); fault.Code != wire.CodeTooManySockets {
		t.Errorf("a second entry at once: heard %+v", fault)
	}
}
