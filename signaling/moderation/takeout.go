package moderation

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	takeOutFirst = 100 * time.Millisecond
	takeOutLimit = 5 * time.Second // a death, and a move
	takeOutAsk   = time.Second     // the node may be dead
)

// TakeOut tells the room's node of a peer that left while it had no link to the node. Otherwise the node expects the peer, since the
// sessions of the others name everybody. at is the pin as the peer's session knew it.
func (m *Moderation) TakeOut(ctx context.Context, room ring.RoomID, peer string, at pin.Pin) {
	ctx, cancel := context.WithTimeout(ctx, takeOutLimit)
	defer cancel()
	request := &control.RemoveRequest{Room: string(room), Peer: peer}
	for wait := (backoff.Backoff{First: takeOutFirst, Most: time.Second}); ; {
		if p, err := m.Pin(ctx, room); err == nil {
			at = p
		} else if errors.Is(err, orchestrator.ErrNoPin) {
			return
		}
		if m.takenOut(ctx, at, request) || !backoff.Sleep(ctx, wait.Next()) {
			return
		}
	}
}

func (m *Moderation) takenOut(ctx context.Context, at pin.Pin, request *control.RemoveRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, takeOutAsk)
	defer cancel()
	client, err := m.deps.Pool.Client(at.Control)
	if err != nil {
		return false
	}
	reply, err := client.Remove(ctx, request)
	return err == nil && len(reply.GetRemoved()) > 0
}
