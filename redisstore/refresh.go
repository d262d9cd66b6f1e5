package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// It blocks the server for a millisecond.
const roomsPerPipeline = 1024

// Refresh prolongs due pins, overwrites none, and claims missing ones again. It takes one round trip, or two for missing
// ones. After an error nothing is known.
func (s *Store) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	found := make([]pin.Found, 0, len(held))
	for part := range slices.Chunk(held, roomsPerPipeline) {
		found = append(found, s.refresh(ctx, part, due)...)
	}
	learned := func(f pin.Found) bool {
		return f.Err == nil || errors.Is(f.Err, pin.ErrCorrupt) || errors.Is(f.Err, pin.ErrLater)
	}
	known := len(held) == 0
	for i, f := range found {
		if !learned(f) {
			found[i].Err = s.unreachable(ctx, f.Room, f.Err)
		}
		known = known || learned(f) || errors.Is(found[i].Err, pin.ErrUnreachable)
	}
	if !known {
		return nil, fmt.Errorf("refresh %d pins: %w", len(held), found[0].Err)
	}
	return found, nil
}

// Prolong renews the current pin's life, and returns the pin.
func (s *Store) Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	p, err := pinIn(room, s.client.GetEx(ctx, s.keys.pin(room), pinTTL))
	if err != nil && !errors.Is(err, redis.Nil) {
		return pin.Pin{}, fmt.Errorf("prolong the pin of room %s: %w", room, s.unreachable(ctx, room, err))
	}
	return p, nil
}

func (s *Store) refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) []pin.Found {
	found := make([]pin.Found, len(held))
	pipe := s.client.Pipeline()
	seen := make([]*redis.StringCmd, len(held))
	for i, h := range held {
		found[i].Room, found[i].Prolonged = h.Room, due(h)
		if found[i].Prolonged {
			seen[i] = pipe.GetEx(ctx, s.keys.pin(h.Room), pinTTL)
		} else {
			seen[i] = pipe.Get(ctx, s.keys.pin(h.Room))
		}
	}
	_, _ = pipe.Exec(ctx)
	var missing []int
	for i, cmd := range seen {
		found[i].Stands, found[i].Err = pinIn(found[i].Room, cmd)
		if errors.Is(found[i].Err, redis.Nil) {
			missing, found[i].Prolonged = append(missing, i), false
		}
	}
	if len(missing) > 0 {
		s.restore(ctx, held, found, missing)
	}
	return found
}

func (s *Store) restore(ctx context.Context, held []pin.Holding, found []pin.Found, missing []int) {
	pipe := s.client.Pipeline()
	claims := make([]*redis.StatusCmd, len(missing))
	for i, at := range missing {
		claims[i] = pipe.SetArgs(ctx, s.keys.pin(held[at].Room), held[at].Pin.Encode(), claimArgs())
	}
	_, _ = pipe.Exec(ctx)
	for i, at := range missing {
		found[at].Stands, found[at].Err = pinIn(found[at].Room, claims[i])
		if errors.Is(found[at].Err, redis.Nil) {
			found[at] = pin.Found{Room: held[at].Room, Stands: held[at].Pin, Rewritten: true, Prolonged: true}
		}
	}
}
