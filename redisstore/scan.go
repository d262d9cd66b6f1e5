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

// scanCount is how many keys one SCAN step looks at. A step blocks the server for its
// length, about 0.1 ms at this size.
const scanCount = 512

// AllPins calls visit for every pin in the store, by SCAN: a pin that stands all the while is
// visited at least once, perhaps more than once, so visit must be idempotent. It is called from one
// goroutine at a time; its error ends the scan and is returned. Corrupt values are logged
// and skipped: the next join of that room repairs them.
func (s *Store) AllPins(ctx context.Context, visit func(pin.Holding) error) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.scan(ctx, s.client, visit)
	}
	var mu sync.Mutex // ForEachMaster runs the masters side by side
	return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return s.scan(ctx, master, func(h pin.Holding) error {
			mu.Lock()
			defer mu.Unlock()
			return visit(h)
		})
	})
}

// scan goes through the keys of one server.
func (s *Store) scan(ctx context.Context, server redis.Cmdable, visit func(pin.Holding) error) error {
	var cursor uint64
	for {
		keys, next, err := server.Scan(ctx, cursor, s.keys.pins(), scanCount).Result()
		if err != nil {
			return fmt.Errorf("scan pins: %w", err)
		}
		if err := s.visitKeys(ctx, keys, visit); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// visitKeys looks up the pins of one SCAN step and visits those that stand.
func (s *Store) visitKeys(ctx context.Context, keys []string, visit func(pin.Holding) error) error {
	rooms := make([]ring.RoomID, 0, len(keys))
	for _, key := range keys {
		room, err := s.keys.room(key)
		if err != nil {
			s.log.Warn("foreign key between the pins", "error", err)
			continue
		}
		rooms = append(rooms, room)
	}
	return s.Pins(ctx, rooms, visit)
}

// Pins calls visit for each of the rooms that has a pin: one round trip a batch. Damaged pins are logged and skipped: the next
// join of that room repairs them. The error of visit ends it and is returned.
func (s *Store) Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error {
	for part := range slices.Chunk(rooms, batch) {
		pipe := s.client.Pipeline()
		gets := make([]*redis.StringCmd, len(part))
		for i, room := range part {
			gets[i] = pipe.Get(ctx, s.keys.pin(room))
		}
		_, _ = pipe.Exec(ctx) // Each command carries its own error.
		for i, get := range gets {
			text, err := textOf(get.Result())
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read pins: %w", err)
			}
			p, err := parse(part[i], text)
			if err != nil {
				s.log.Warn("corrupt pin", "room", part[i], "error", err)
				continue
			}
			if err := visit(pin.Holding{Room: part[i], Pin: p}); err != nil {
				return err
			}
		}
	}
	return nil
}
