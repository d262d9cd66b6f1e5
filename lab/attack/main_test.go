// Package attack hurts a cluster as a stranger, or somebody with a good token, can, with a call of two people
// going on at the same nodes. Each attack must cost its author, and the call must lose nothing.
package attack

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
