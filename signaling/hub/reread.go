package hub

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// An owner without the store cannot learn that its pin expired and the room opened elsewhere. So signaling nodes
	// read their rooms' pins.
	rereadLeast  = 30 * time.Second
	rereadSpread = 30 * time.Second
	rereadLimit  = 5 * time.Second
)

// Run reads the pins of the rooms here, twice a minute, until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(rereadLeast + rand.N(rereadSpread))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		h.deps.Panics.Catch(h.deps.Log, "a look at the rooms' pins broke", func() { h.Reread(ctx) })
	}
}

// Reread follows higher pins that the placer accepts: after a data loss a pin may be a claim that is being handed back. Run calls it.
func (h *Hub) Reread(ctx context.Context) {
	here := h.pins()
	rooms := make([]ring.RoomID, 0, len(here))
	for room := range here {
		rooms = append(rooms, room)
	}
	limited, cancel := context.WithTimeout(ctx, rereadLimit)
	defer cancel()
	var higher []ring.RoomID
	err := h.deps.Store.Pins(limited, rooms, func(held pin.Holding) error {
		if ours := here[held.Room]; ours.Boot != held.Pin.Boot && ours.Fence.Less(held.Pin.Fence) {
			higher = append(higher, held.Room)
		}
		return nil
	})
	if err != nil {
		h.deps.Log.Debug("pins of the rooms here not read", "error", err)
	}
	for _, room := range higher {
		to, err := h.Place(ctx, room, headroom.Room{})
		if err == nil && to.Boot != here[room].Boot {
			h.Found(room, to, pin.Fence{})
		}
	}
}
