package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type prober struct{ pool *control.Pool }

// BootAt tells a refusal from other silences.
func (p prober) BootAt(ctx context.Context, address string) (pin.BootID, error) {
	hello, err := p.pool.HelloAt(ctx, address)
	if errors.Is(err, control.ErrRefused) {
		return "", fmt.Errorf("%w: %w", orchestrator.ErrNobodyThere, err)
	}
	return hello.Boot, err
}

// Holds makes a new connection if the pooled one belongs to a dead process.
func (p prober) Holds(ctx context.Context, address string, room ring.RoomID) (pin.Pin, error) {
	client, err := p.pool.Client(address)
	if err != nil {
		return pin.Pin{}, err
	}
	reply, err := client.Holds(ctx, &control.HoldsRequest{Room: string(room)})
	if err != nil {
		if _, gone := p.BootAt(ctx, address); errors.Is(gone, orchestrator.ErrNobodyThere) {
			return pin.Pin{}, gone
		}
		return pin.Pin{}, fmt.Errorf("ask %s for room %s: %w", address, room, err)
	}
	if reply.GetPin() == nil {
		return pin.Pin{}, nil
	}
	return reply.GetPin().Value()
}
