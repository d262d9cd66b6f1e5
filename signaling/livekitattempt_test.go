package signaling

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// TestAttemptsOfLiveKitClients: each connection of a session has a higher attempt than the one before, however soon it comes, and no generation
// of it overflows.
func TestAttemptsOfLiveKitClients(t *testing.T) {
	began := time.UnixMilli(1795904605920)
	who := access.Session{Began: began.UnixMilli()}
	last := uint64(1) // that of the first connection
	for _, age := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, time.Second, 100 * 24 * time.Hour} {
		attempt := attemptOf(who, began.Add(age))
		if attempt <= last {
			t.Errorf("at %s the attempt is %d, after %d", age, attempt, last)
		}
		last = attempt
	}
	if old := attemptOf(access.Session{}, began.AddDate(200, 0, 0)); old > math.MaxUint64/generationsPerAttempt {
		t.Errorf("attempt %d", old)
	}
	if attempt := attemptOf(who, began.Add(-time.Hour)); attempt < 2 {
		t.Errorf("with a clock that went back the attempt is %d", attempt)
	}
}
