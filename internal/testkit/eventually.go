// Package testkit is what the tests of several packages share. Tests alone import it.
package testkit

import (
	"testing"
	"time"
)

const (
	patience  = time.Minute
	lookEvery = 5 * time.Millisecond
)

// Eventually waits until holds, for a minute at most.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit, every := time.After(patience), time.NewTicker(lookEvery)
	defer every.Stop()
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("waited %s for %s", patience, what)
		case <-every.C:
		}
	}
}
