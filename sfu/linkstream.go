package sfu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// linkMessages may wait for the other node. More end the link, which begins anew with all that there is.
const linkMessages = 4096

// linkStream is what is still to be told to the other node of a link. Nobody waits for it.
type linkStream struct {
	out chan *control.LinkMessage
	// ended is closed at the end, after which what waits is dropped; finished, when nothing more will be said.
	ended    chan struct{}
	finished chan struct{}

	end    func()
	finish func()
	media  linkMedia
	beat   heartbeat

	// current is the pin of the room.
	current *heldPin
	panics  *panics.Guard
	log     *slog.Logger
}

func (n *Node) newLinkStream(media linkMedia, current *heldPin, log *slog.Logger) *linkStream {
	s := &linkStream{current: current, panics: n.panics, log: log, beat: heartbeat{beats: new(atomic.Bool)}, media: media, out: make(chan *control.LinkMessage, linkMessages), ended: make(chan struct{}), finished: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	s.finish = sync.OnceFunc(func() { close(s.finished) })
	return s
}

func (s *linkStream) say(m *control.LinkMessage) {
	select {
	case s.out <- m:
	default:
		s.end()
	}
}

// write sends what is said, until the stream ends, or is finished and all is sent.
func (s *linkStream) write(send func(*control.LinkMessage) error) error {
	for {
		select {
		case m := <-s.out:
			if err := send(m); err != nil {
				return err
			}
			continue
		default:
		}
		select {
		case m := <-s.out:
			if err := send(m); err != nil {
				return err
			}
		case <-s.finished:
			if len(s.out) == 0 {
				return nil
			}
		case <-s.ended:
			return errLinkEnded
		}
	}
}

// serve carries the media of a link and hears the other node, until one of the two ends.
func (s *linkStream) serve(ctx context.Context, receive func() (*control.LinkMessage, error), hear func(*control.LinkMessage)) error {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() {
		err := s.media.Run(ctx, func(message *control.LinkMessage) error {
			message.Fence = control.FenceProto(s.current.pin().Fence)
			s.say(message)
			return nil
		})
		if ctx.Err() == nil {
			s.log.Info("the media of a link ended: it is made anew", "error", err)
		}
		s.end()
	})
	running.Go(func() {
		s.beat.run(ctx, func() { s.say(&control.LinkMessage{Fence: control.FenceProto(s.current.pin().Fence)}) }, func() {
			s.log.Info("the other node of a link is silent: the link is made anew")
			s.end()
		})
	})
	for {
		message, err := receive()
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("hear the room's other node: %w", err)
		}
		s.beat.note(message)
		switch message.GetMessage().(type) {
		case nil: // a beat
		case *control.LinkMessage_States, *control.LinkMessage_Wants:
			s.media.Take(message)
		default:
			s.panics.Catch(s.log, "a message of a link broke its handling: it is left out", func() { hear(message) })
		}
	}
}
