package load

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; a busy machine may need a good part of it.
const patience = 60 * time.Second

// eventually waits for a condition; met says what is still missing.
func eventually(t *testing.T, what string, met func() error) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := met()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %s until %s: %v", patience, what, err)
		}
	}
}
