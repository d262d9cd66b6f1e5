package control

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
)

// DrainOrder is an operator's.
type DrainOrder struct {
	Undrain  bool
	Deadline time.Duration // 0: the node's own
	Exit     bool          // when empty
}

// Drain empties the node at addr, or undoes that.
func (p *Pool) Drain(ctx context.Context, addr string, order DrainOrder) (*DrainReply, error) {
	client, err := p.Client(addr)
	if err != nil {
		return nil, err
	}
	p.Hurry(addr)
	request := &DrainRequest{Undrain: order.Undrain, DeadlineMs: uint32(order.Deadline.Milliseconds()), Exit: order.Exit}
	reply, err := client.Drain(ctx, request, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("drain %s: %w", addr, err)
	}
	return reply, nil
}
