package pincache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestHighestPinIsRemembered(t *testing.T) {
	var c Cache
	low, high := testkit.PinAt("a", 1, 5000, 1), testkit.PinAt("b", 1, 5000, 2)
	c.Note("r", high)
	c.Note("r", low)
	if got := c.Of("r"); got != high {
		t.Fatalf("%v is remembered, want the higher pin", got)
	}
	c.Note("s", pin.Pin{Fence: low.Fence})
	c.Note("s", low)
	if got := c.Of("s"); got != low {
		t.Fatalf("%v is remembered, want the pin of the fence", got)
	}
	if got := c.NextEpoch("r", low); got != 5001 {
		t.Fatalf("a move has the epoch %d, want 5001", got)
	}
}

func TestFreshEpochIsAboveEveryEpochSeen(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	c := Cache{Clock: func() time.Time { return now }}
	if got := c.FreshEpoch("r"); got != 1_000_000 {
		t.Fatalf("the epoch is %d, want the time", got)
	}
	c.Note("s", testkit.PinAt("a", 1, 2_000_000, 1))
	if got := c.FreshEpoch("r"); got != 2_000_001 {
		t.Fatalf("the epoch is %d, want one above another room's", got)
	}
	absurd := uint64(now.Add(2 * maxClockLead).UnixMilli())
	c.Note("t", testkit.PinAt("a", 1, absurd, 1))
	if got := c.FreshEpoch("r"); got != 2_000_001 {
		t.Fatalf("an absurd epoch raised another room's to %d", got)
	}
	if got := c.FreshEpoch("t"); got != absurd+1 {
		t.Fatalf("the room itself gets %d, want one above its own", got)
	}
}

func TestVerificationCountsForItsIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		p := testkit.PinAt("a", 1, 5000, 1)
		c.Verified("r", p, 7)
		if !c.IsVerified("r", p, 7) || c.IsVerified("r", p, 8) || c.IsVerified("r", p, 0) {
			t.Fatal("a verification counts for another incarnation, or not for its own")
		}
		<-time.After(time.Minute)
		if !c.IsRecent("r", p, time.Hour) || c.IsRecent("r", p, time.Second) {
			t.Fatal("the pin was shown a minute ago")
		}
		higher := testkit.PinAt("b", 1, 5001, 1)
		if c.Note("r", higher); c.IsVerified("r", higher, 7) || c.IsRecent("r", higher, time.Hour) {
			t.Fatal("a pin that was only heard of counts as verified, or as shown")
		}
	})
}

func TestCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	var c Cache
	used := testkit.PinAt("a", 1, 5000, 1)
	c.Note("used", used)
	for i := range 5 * maxCachedRooms {
		c.Note(ring.RoomID(fmt.Sprint(i)), testkit.PinAt("b", 1, 1, 1))
		if i%1000 == 0 {
			c.Note("used", used)
		}
	}
	if n := len(c.recent) + len(c.older); n > 2*maxCachedRooms {
		t.Fatalf("%d rooms are remembered, at most %d", n, 2*maxCachedRooms)
	}
	if c.Of("used") != used {
		t.Fatal("a room that is used all the time was forgotten")
	}
}
