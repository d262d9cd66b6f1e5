package control

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/pin"
)

// DrainOrder is what an operator orders.
type DrainOrder struct {
	// Boot is the process that is meant. Another process at the address does nothing, unless it is of an earlier
	// release.
	Boot    pin.BootID
	Undrain bool
	// Deadline is for live moves; 0 stands for the node's own.
	Deadline time.Duration
	// Exit ends the process when it is empty.
	Exit bool
}

// Drain empties the node at addr, or undoes that. The reply names the process that answered.
func (p *Pool) Drain(ctx context.Context, addr string, order DrainOrder) (*DrainReply, error) {
	client, err := p.Client(addr)
	if err != nil {
		return nil, err
	}
	p.Hurry(addr)
	request := &DrainRequest{Undrain: order.Undrain, DeadlineMs: uint32(order.Deadline.Milliseconds()), Exit: order.Exit, Boot: string(order.Boot)}
	reply, err := client.Drain(ctx, request, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("drain %s: %w", addr, err)
	}
	return reply, nil
}
