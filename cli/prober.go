package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
)

// prober asks a control address who lives there, in the orchestrator's words.
type prober struct{ pool *control.Pool }

// BootAt tells a refusal from every other silence.
func (p prober) BootAt(ctx context.Context, address string) (pin.BootID, error) {
	boot, err := p.pool.BootAt(ctx, address)
	if errors.Is(err, control.ErrRefused) {
		return "", fmt.Errorf("%w: %w", orchestrator.ErrNobodyThere, err)
	}
	return boot, err
}
