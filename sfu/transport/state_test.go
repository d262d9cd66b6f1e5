package transport

import (
	"testing"
	"time"
	"unsafe"
)

// withWallMoved is t as read after somebody set the wall clock: its monotonic part is the same.
func withWallMoved(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	*(*uint64)(unsafe.Pointer(&moved)) += uint64(by/time.Second) << 30 // the seconds in time.Time.wall
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		t.Fatal("time.Time is not what this test takes it for")
	}
	return moved
}

// TestAStepOfTheWallClockIsNoSilence: not forward, and backward it hides none.
func TestAStepOfTheWallClockIsNoSilence(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	now := time.Now()
	if s := c.conn.present(withWallMoved(t, now, time.Hour)); s != Connected {
		t.Errorf("a step forward makes a living connection %v", s)
	}
	if s := c.conn.present(withWallMoved(t, now.Add(failedAfter+time.Second), -time.Hour)); s != Failed {
		t.Errorf("a step back makes a dead connection %v", s)
	}
}
