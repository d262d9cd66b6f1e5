package forward

import (
	"testing"
	"time"
)

// TestRoomsTickAtTheSameTimes: a tick that is late or early does not move the following ones.
func TestRoomsTickAtTheSameTimes(t *testing.T) {
	for _, ahead := range []time.Duration{-9 * time.Millisecond, -time.Microsecond, 0, time.Millisecond, 10 * time.Millisecond} {
		due := time.Unix(1_769_000_000, 0)
		if got := due.Add(ahead).Add(untilTick(calmInterval, due.Add(ahead))); !got.Equal(due.Add(calmInterval)) {
			t.Errorf("behind a tick at %v ahead of its time, the next is due at %v, want %v", ahead, got, due.Add(calmInterval))
		}
	}
}
