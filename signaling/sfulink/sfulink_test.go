package sfulink

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	generous = 60 * time.Second
	hidden   = "0123456789abcdef0123456789abcdef-link"
)

// media hands every stream to the test.
type media struct {
	control.UnimplementedMediaServer

	attach func(grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error
}

func (m *media) Attach(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
	return m.attach(stream)
}

// dial serves attach and returns a client for it, and what the link is opened with.
func dial(t *testing.T, attach func(grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error) (control.MediaClient, Opening) {
	t.Helper()
	key, err := control.ParseClusterKey(hidden)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- control.NewServer(key, panics.New(), slog.New(slog.DiscardHandler)).Serve(ctx, lis, func(s *grpc.Server) {
			control.RegisterMediaServer(s, &media{attach: attach})
		})
	}()
	pool := control.NewPool(key, control.DefaultConfig())
	t.Cleanup(func() {
		pool.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("served until %v", err)
		}
	})
	client, err := pool.Client(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return client, Opening{
		Pin:  pin.Pin{Fence: pin.Fence{Epoch: 10, Nonce: 2}, Node: "sfu-1", Boot: "boot", Control: lis.Addr().String()},
		Room: "lobby", Peer: &control.Peer{Id: "p-1"}, Generation: 5,
	}
}

// welcome reads the Attach and answers it.
func welcome(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	return stream.Send(&control.PeerEvent{Fence: first.GetFence(), Seq: 3, Event: &control.PeerEvent_Attached{
		Attached: &control.Attached{Peer: first.GetAttach().GetPeer().GetId()},
	}})
}

func TestMessagesCarryTheFenceAndStaleEventsAreDropped(t *testing.T) {
	heard := make(chan *control.PeerMessage, 4)
	client, opening := dial(t, func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
		if err := welcome(stream); err != nil {
			return err
		}
		for _, fence := range []pin.Fence{{Epoch: 10, Nonce: 1}, {Epoch: 9, Nonce: 9}, {Epoch: 10, Nonce: 2}, {Epoch: 11}} {
			event := &control.PeerEvent{Fence: control.FenceProto(fence), Seq: fence.Epoch, Event: &control.PeerEvent_Speakers{Speakers: &control.Speakers{}}}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
		for {
			m, err := stream.Recv()
			if err != nil {
				close(heard)
				return nil //nolint:nilerr // the signaling node has closed its side
			}
			heard <- m
		}
	})
	link, err := Open(context.Background(), client, opening, generous)
	if err != nil {
		t.Fatal(err)
	}
	if link.Seq != 3 || link.Attached.GetPeer() != "p-1" {
		t.Errorf("attached %v, seq %d", link.Attached, link.Seq)
	}
	for _, want := range []uint64{10, 11} {
		if event := <-link.Events(); event.GetSeq() != want {
			t.Errorf("heard seq %d, want %d", event.GetSeq(), want)
		}
	}
	if err := link.Send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{}}}); err != nil {
		t.Fatal(err)
	}
	link.Leave("left")
	var said []string
	for m := range heard {
		if fence, err := m.GetFence().Value(); err != nil || fence != opening.Pin.Fence {
			t.Errorf("said under %v, %v", fence, err)
		}
		switch m.GetMessage().(type) {
		case *control.PeerMessage_Mute:
			said = append(said, "mute")
		case *control.PeerMessage_Leave:
			said = append(said, "leave")
		}
	}
	if len(said) != 2 || said[0] != "mute" || said[1] != "leave" {
		t.Errorf("said %v", said)
	}
	if err := link.Send(&control.PeerMessage{}); !errors.Is(err, errClosed) {
		t.Errorf("Send after Leave = %v", err)
	}
}

func TestRefusalsAreTyped(t *testing.T) {
	client, opening := dial(t, func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		return stream.Send(&control.PeerEvent{Event: &control.PeerEvent_Refused{Refused: &control.Refused{
			Code: control.Refusal_REFUSAL_FENCED, Message: "no", Current: &control.Fence{Epoch: 12, Nonce: 1},
		}}})
	})
	_, err := Open(context.Background(), client, opening, generous)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || refused.Code != control.Refusal_REFUSAL_FENCED || refused.Current != (pin.Fence{Epoch: 12, Nonce: 1}) || errors.Is(err, ErrUnreachable) {
		t.Fatalf("Open = %v", err)
	}
}

// TestAFrozenNodeIsOnlyUnreachable has a node that accepts the stream and says nothing,
// and one that says the wrong thing.
func TestAFrozenNodeIsOnlyUnreachable(t *testing.T) {
	for name, attach := range map[string]func(grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error{
		"silent": func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
			<-stream.Context().Done()
			return nil
		},
		"confused": func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
			return stream.Send(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{}}})
		},
		"short": func(grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			client, opening := dial(t, attach)
			patience := generous
			if name == "silent" {
				patience = 100 * time.Millisecond
			}
			if _, err := Open(context.Background(), client, opening, patience); !errors.Is(err, ErrUnreachable) {
				t.Fatalf("Open = %v, want ErrUnreachable", err)
			}
		})
	}
}

// TestSendNeverBlocks fills the stream of a node that reads nothing.
func TestSendNeverBlocks(t *testing.T) {
	client, opening := dial(t, func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
		if err := welcome(stream); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	})
	link, err := Open(context.Background(), client, opening, generous)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	big := make([]byte, 64<<10)
	for range 10 * outboundMessages {
		err = link.Send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: &control.Offer{Sdp: string(big)}}})
		if err != nil {
			break
		}
	}
	if !errors.Is(err, ErrStuck) {
		t.Fatalf("Send = %v, want ErrStuck", err)
	}
	for range link.Events() { // it ends
	}
	if link.Err() == nil {
		t.Error("the link ended without a reason")
	}
}

func TestALinkEndsWithItsContext(t *testing.T) {
	client, opening := dial(t, func(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
		if err := welcome(stream); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	link, err := Open(ctx, client, opening, generous)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for range link.Events() { // it ends
	}
	link.Close()
	if _, err := Open(ctx, client, opening, generous); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("Open with a context that has ended = %v", err)
	}
}
