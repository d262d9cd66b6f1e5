// Package testkit is what the tests of several packages share. Only tests import it.
package testkit

import (
	"errors"
	"testing"
	"time"
)

// The bound is long because the machine may be busy.
const patience = time.Minute

var errNotYet = errors.New("it does not hold")

// Eventually waits until holds returns true, for a minute at most.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	wait(t, patience, 5*time.Millisecond, what, func() error {
		if !holds() {
			return errNotYet
		}
		return nil
	})
}

// Within waits until met returns no error. It asks less often than Eventually.
func Within(t testing.TB, limit time.Duration, what string, met func() error) {
	t.Helper()
	wait(t, limit, 100*time.Millisecond, what, met)
}

func wait(t testing.TB, limit, every time.Duration, what string, met func() error) {
	t.Helper()
	deadline, tick := time.Now().Add(limit), time.NewTicker(every)
	defer tick.Stop()
	for {
		err := met()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		<-tick.C
	}
}
