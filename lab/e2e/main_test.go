// Package e2e tests the whole system as its users have it: `holdfast dev` with
// real processes, real signals, and real browsers with fake cameras.
//
// It looks at a cluster through its ports, its logs and what people see and hear, and
// into no process. Begin with calls_test.go.
package e2e

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
