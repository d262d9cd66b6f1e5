package control

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Rooms breaks.
func (m *media) Rooms(context.Context, *RoomsRequest) (*RoomsReply, error) { panic("of a test") }

// Attach breaks.
func (m *media) Attach(Media_AttachServer) error { panic("of a test") }

// TestACallThatBreaksItsHandlerEndsAlone: the process lives, the connection too, and the log says which call it was.
func TestACallThatBreaksItsHandlerEndsAlone(t *testing.T) {
	node, client, watch := watchedNode(t)
	if _, err := client.Rooms(testContext(t), &RoomsRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("a call that breaks ends with %v", err)
	}
	stream, err := client.Attach(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("a stream that breaks ends with %v", err)
	}
	if _, err := client.Outrank(testContext(t), &OutrankRequest{Room: "room"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	node.log.Wait(t, "method=/holdfast.control.v1.Media/Attach")
	node.media.heartbeat <- struct{}{}
	if _, err := watch.Recv(); err != nil {
		t.Errorf("the stream beside them: %v", err)
	}
}
