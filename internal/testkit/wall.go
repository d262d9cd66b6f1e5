package testkit

import (
	"testing"
	"time"
	"unsafe"
)

// WithWallMoved is at as read after somebody set the wall clock: its monotonic part is the same.
func WithWallMoved(t testing.TB, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	*(*uint64)(unsafe.Pointer(&moved)) += uint64(by/time.Second) << 30 // the seconds in time.Time.wall
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		t.Fatal("time.Time is not what this test takes it for")
	}
	return moved
}
