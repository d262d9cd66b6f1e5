package devcluster

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; a busy machine may need a good part of it.
const patience = 60 * time.Second

// await waits for a condition.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
