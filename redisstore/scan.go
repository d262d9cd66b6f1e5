package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// scanCount bounds a scan to 0.1 ms of the server's time.
const scanCount = 512

// AllPins visits every pin at least once.
func (s *Store) AllPins(ctx context.Context, visit func(pin.Holding) error) error {
	if s.sole != nil {
		return s.scan(ctx, s.sole.client, visit)
	}
	var mu sync.Mutex
	return s.cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		err := errBroke
		s.panics.Catch(s.log, "a scan of pins broke", func() {
			err = s.scan(ctx, master, func(h pin.Holding) error {
				mu.Lock()
				defer mu.Unlock()
				return visit(h)
			})
		})
		return err
	})
}

func (s *Store) scan(ctx context.Context, server *redis.Client, visit func(pin.Holding) error) error {
	var cursor uint64
	for {
		keys, next, err := server.Scan(ctx, cursor, s.keys.pins(), scanCount).Result()
		if err != nil {
			return fmt.Errorf("scan pins: %w", err)
		}
		rooms := make([]ring.RoomID, 0, len(keys))
		for _, key := range keys {
			room, err := s.keys.room(key)
			if err != nil {
				s.log.Warn("foreign key between the pins", "error", err)
				continue
			}
			rooms = append(rooms, room)
		}
		if err := s.Pins(ctx, rooms, visit); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// Pins calls visit for each pin, one call at a time. Damaged pins and those of a later version are logged and left
// out.
func (s *Store) Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error {
	later := 0
	defer func() {
		if later > 0 {
			s.log.Info("pins of newer nodes left alone", "rooms", later)
		}
	}()
	for part := range slices.Chunk(rooms, roomsPerPipeline) {
		pipe := s.client.Pipeline()
		gets := make([]*redis.StringCmd, len(part))
		for i, room := range part {
			gets[i] = pipe.Get(ctx, s.keys.pin(room))
		}
		_, _ = pipe.Exec(ctx)
		for i, get := range gets {
			p, err := pinIn(part[i], get)
			switch {
			case errors.Is(err, redis.Nil):
				continue
			case errors.Is(err, pin.ErrCorrupt):
				s.log.Warn("corrupt pin", "room", part[i], "error", err)
				continue
			case errors.Is(err, pin.ErrLater):
				later++
				continue
			case err != nil:
				return fmt.Errorf("read pins: %w", err)
			}
			if err := visit(pin.Holding{Room: part[i], Pin: p}); err != nil {
				return err
			}
		}
	}
	return nil
}
