package testkit

import (
	"testing"
	"time"
	"unsafe"
)

// WithWallMoved returns the moment at as if it was read after somebody had set the wall clock. Its monotonic part is
// unchanged.
func WithWallMoved(t testing.TB, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	// The wall field of time.Time has its seconds from bit 30 on.
	*(*uint64)(unsafe.Pointer(&moved)) += uint64(by/time.Second) << 30
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		t.Fatal("time.Time is not what this test takes it for")
	}
	return moved
}
