package nodelink

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/people/messaging"
)

const (
	// Seconds of a busy node's frames; then it is frozen or cut off.
	outboxFrames = 8192
	// A quarter of what a batch may have: a frame has 64 KiB at most, and registrations.
	batchBytes = 256 << 10
	// Between two batches: under load they gather frames, and many nodes cost no more a message than few. What comes
	// after a pause is sent at once.
	gatherFor  = 2 * time.Millisecond
	redialBase = 50 * time.Millisecond
	redialMax  = time.Second
)

// outbox is what waits for one node.
type outbox struct {
	links   *Links
	to      messaging.Peer
	address string
	started bool // guarded by links.mu
	wake    chan struct{}
	end     chan struct{}

	mu     sync.Mutex // guards the fields below
	frames []messaging.Frame
}

func newOutbox(l *Links, to messaging.Peer, address string) *outbox {
	return &outbox{links: l, to: to, address: address, wake: make(chan struct{}, 1), end: make(chan struct{})}
}

func (o *outbox) close() { close(o.end) }

// put reports whether there was room.
func (o *outbox) put(f messaging.Frame) bool {
	o.mu.Lock()
	full := len(o.frames) >= outboxFrames
	if !full {
		o.frames = append(o.frames, f)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return !full
}

func (o *outbox) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-o.end:
			cancel()
		case <-ctx.Done():
		}
	}()
	pause := backoff.Backoff{First: redialBase, Most: redialMax}
	for ctx.Err() == nil {
		sent, err := o.stream(ctx)
		if err != nil && ctx.Err() == nil {
			o.links.log.Debug("stream of direct messages broke", "node", o.to.ID, "error", err)
		}
		if sent {
			pause.Reset()
		}
		backoff.Sleep(ctx, pause.Next())
	}
}

// stream opens one and sends until it breaks.
func (o *outbox) stream(ctx context.Context) (sent bool, err error) {
	if !o.wait(ctx) {
		return false, nil
	}
	client, err := o.links.pool.Messages(o.address)
	if err != nil {
		return false, fmt.Errorf("reach %s: %w", o.to.ID, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Exchange(ctx)
	if err != nil {
		return false, fmt.Errorf("open a stream to %s: %w", o.to.ID, err)
	}
	batch := &control.MessageBatch{From: encodeRun(o.links.self), To: encodeRun(o.to)}
	var fault error
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		fault = stream.RecvMsg(new(control.MessagesEnd))
	}()
	defer func() { cancel(); <-broken }()
	for {
		if err := o.send(stream, batch); err != nil {
			return sent, err
		}
		sent, batch = true, &control.MessageBatch{}
		backoff.Sleep(ctx, gatherFor)
		select {
		case <-broken:
			return sent, fmt.Errorf("stream to %s: %w", o.to.ID, fault)
		case <-o.wake:
		case <-ctx.Done():
			return sent, nil
		}
	}
}

// wait reports whether there is something to send.
func (o *outbox) wait(ctx context.Context) bool {
	for {
		o.mu.Lock()
		some := len(o.frames) > 0
		o.mu.Unlock()
		if some {
			return true
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// send takes all that waits.
func (o *outbox) send(stream grpc.ClientStreamingClient[control.MessageBatch, control.MessagesEnd], batch *control.MessageBatch) error {
	for {
		o.mu.Lock()
		frames := o.frames
		o.frames = nil
		o.mu.Unlock()
		if len(frames) == 0 {
			return nil
		}
		for len(frames) > 0 {
			size := 0
			for len(frames) > 0 && len(batch.Frames) < maxFrames && size < batchBytes {
				frame := encode(frames[0])
				size += sizeOf(frame)
				batch.Frames, frames = append(batch.Frames, frame), frames[1:]
			}
			if err := stream.Send(batch); err != nil {
				return fmt.Errorf("send to %s: %w", o.to.ID, err)
			}
			batch = &control.MessageBatch{}
		}
	}
}
