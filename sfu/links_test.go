package sfu

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
)

// callsOthers lets a node call others, as a control.Pool does.
func callsOthers(t *testing.T) func(*Config) {
	return func(cfg *Config) {
		cfg.Control = "named-by-its-caller:1"
		cfg.Links = func(address string) (control.LinksClient, error) {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = conn.Close() })
			return control.NewLinksClient(conn), nil
		}
	}
}

// peer is this node as others know it.
func (s *stage) peer() cascade.Peer {
	return cascade.Peer{Node: s.node.cfg.Node, Boot: s.node.cfg.Boot, Control: s.control}
}

// TestTwoMediaNodesHaveATrunk over their control services and media sockets. A call for another process is refused in a code of its own.
func TestTwoMediaNodesHaveATrunk(t *testing.T) {
	a, b := newStage(t, "a", callsOthers(t)), newStage(t, "b", callsOthers(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	trunk, err := a.node.trunks.With(ctx, b.peer())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.node.trunks.With(ctx, a.peer()); err != nil {
		t.Fatal(err)
	}
	if again, err := a.node.trunks.With(ctx, b.peer()); again != trunk || err != nil {
		t.Errorf("the second caller gets another trunk: %v", err)
	}
	other := b.peer()
	other.Boot += "0"
	if _, err := a.node.trunks.With(ctx, other); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a call for another process: %v", err)
	}
	b.stop()
	select {
	case <-trunk.Done():
	case <-ctx.Done():
		t.Error("the end of the other node is not noticed")
	}
}
