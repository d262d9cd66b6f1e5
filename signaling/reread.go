package signaling

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

func (s *Server) watchPins(ctx context.Context) {
	for {
		timer := time.NewTimer(rereadLeast + rand.N(rereadSpread))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		s.panics.Survives(s.log, "a look at the rooms' pins broke", func() { s.rereadPins(ctx) })
	}
}

// rereadPins follows higher pins that the placer accepts: after a data loss one may be a claim being handed back.
func (s *Server) rereadPins(ctx context.Context) {
	here := s.hub.pins()
	rooms := make([]ring.RoomID, 0, len(here))
	for room := range here {
		rooms = append(rooms, room)
	}
	limited, cancel := context.WithTimeout(ctx, rereadLimit)
	defer cancel()
	var higher []ring.RoomID
	err := s.parts.Store.Pins(limited, rooms, func(h pin.Holding) error {
		if ours := here[h.Room]; ours.Boot != h.Pin.Boot && ours.Fence.Less(h.Pin.Fence) {
			higher = append(higher, h.Room)
		}
		return nil
	})
	if err != nil {
		s.log.Debug("pins of the rooms here not read", "error", err)
	}
	for _, room := range higher {
		to, err := s.hub.place(ctx, room, headroom.Room{})
		if err == nil && to.Boot != here[room].Boot {
			s.hub.found(room, to, pin.Fence{})
		}
	}
}
