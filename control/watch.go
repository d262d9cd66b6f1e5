package control

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var errStreamEnded = errors.New("the node ended the stream")

// Watch calls heard for each heartbeat of the node at addr, until the stream breaks, ctx ends, or heard returns an
// error. It waits for a node that is out of reach.
func (p *Pool) Watch(ctx context.Context, addr, self string, heard func(Hello) error) error {
	client, err := p.Client(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.Hurry(addr)
	stream, err := client.Watch(ctx, &WatchRequest{SignalingNode: self, Version: Protocol, Capabilities: Capabilities()}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("watch %s: %w", addr, err)
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = errStreamEnded
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", addr, err)
		}
		hello, err := message.Value()
		if err != nil {
			return fmt.Errorf("watch %s: %w", addr, err)
		}
		if err := heard(hello); err != nil {
			return err
		}
	}
}

// Outrank tells the node at addr of a higher pin. held reports that it had the room under a lower one. live has the
// meaning of OutrankRequest.Live.
func (p *Pool) Outrank(ctx context.Context, addr string, room ring.RoomID, higher pin.Pin, live bool) (held bool, err error) {
	client, err := p.Client(addr)
	if err != nil {
		return false, err
	}
	p.Hurry(addr)
	reply, err := client.Outrank(ctx, &OutrankRequest{Room: string(room), Pin: PinProto(higher), Live: live}, grpc.WaitForReady(true))
	if err != nil {
		return false, fmt.Errorf("fence room %s at %s: %w", room, addr, err)
	}
	return reply.GetHeld(), nil
}
