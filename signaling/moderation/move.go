package moderation

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// For each question of an ordered move.
const movePatience = 3 * time.Second

// Moved is a move that an operator ordered.
type Moved struct {
	Room  ring.RoomID `json:"room"`
	From  ring.NodeID `json:"from"`
	To    ring.NodeID `json:"to"`
	Epoch uint64      `json:"epoch"`
}

// Move moves a room to the named node, or to the placer's choice. It returns once the clients here are told. After a crash on the way, the
// compare-and-set has decided, and the former owner finds out by itself.
func (m *Moderation) Move(ctx context.Context, room ring.RoomID, to ring.NodeID) (Moved, error) {
	from, err := m.Pin(ctx, room)
	if err != nil {
		return Moved{}, err
	}
	next, err := m.deps.Placer.Move(ctx, room, from, to, m.costOf(ctx, room, from), pin.WhyOperator)
	if err != nil {
		return Moved{}, err
	}
	if next.Boot != from.Boot {
		limited, cancel := context.WithTimeout(ctx, movePatience)
		_, err = m.deps.Pool.Outrank(limited, from.Control, room, next, true)
		cancel()
		if err != nil {
			m.deps.Log.Warn("node not told that its room has moved: its clients restart", "room", room, "node", from.Node, "error", err)
		}
		failpoint.Hit("move.after-outrank")
		m.deps.Rooms.MovedLive(ctx, room, next)
		failpoint.Hit("move.after-tell")
	}
	m.deps.Log.Info("room moved by an operator", "room", room, "from", from.Node, "to", next.Node, "epoch", next.Fence.Epoch)
	return Moved{Room: room, From: from.Node, To: next.Node, Epoch: next.Fence.Epoch}, nil
}

// Pin reads the room's pin. It returns orchestrator.ErrNoPin for a room that is not open.
func (m *Moderation) Pin(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	var found pin.Pin
	err := m.deps.Store.Pins(ctx, []ring.RoomID{room}, func(h pin.Holding) error {
		found = h.Pin
		return nil
	})
	switch {
	case err != nil:
		return pin.Pin{}, fmt.Errorf("%w: %w", orchestrator.ErrStoreUnavailable, err)
	case found.IsZero():
		return pin.Pin{}, orchestrator.ErrNoPin
	}
	return found, nil
}

// costOf asks the room's media node, so that the answer is the same at every signaling node. If it does not tell, the clients here do.
func (m *Moderation) costOf(ctx context.Context, room ring.RoomID, at pin.Pin) headroom.Room {
	held, err := m.heldAt(ctx, room, at)
	if err != nil {
		m.deps.Log.Debug("cost of a room not known", "room", room, "node", at.Node, "error", err)
	}
	if held.GetSize() != nil {
		return m.sizeOf(held.GetSize())
	}
	for _, local := range m.deps.Rooms.PinnedTo(at.Boot) {
		if local.Room == room && local.Expect.People > 0 {
			return local.Expect
		}
	}
	return headroom.Expect(len(held.GetPeers()))
}

// heldAt is nil if the node does not have the room.
func (m *Moderation) heldAt(ctx context.Context, room ring.RoomID, at pin.Pin) (*control.HeldRoom, error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	client, err := m.deps.Pool.Client(at.Control)
	if err != nil {
		return nil, err
	}
	reply, err := client.Rooms(ctx, &control.RoomsRequest{})
	for _, held := range reply.GetRooms() {
		if held.GetRoom() == string(room) && held.GetOwner() == "" {
			return held, nil
		}
	}
	return nil, err
}

// sizeOf expects of a room what a session expects whose token names no size.
func (m *Moderation) sizeOf(size *control.RoomSize) headroom.Room {
	room := headroom.Room{People: int(size.GetPeople()), Cameras: int(size.GetCameras()), Microphones: int(size.GetMicrophones()), Running: true}
	room = room.AtLeast(max(int(size.GetExpected()), m.deps.ExpectedSize))
	if sent := size.GetEgress(); sent != nil {
		room.Measured, room.Sent = true, sent.Value()
	}
	return room
}
