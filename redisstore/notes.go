package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Note writes a room's notes by name, in one round trip. It may be repeated.
func (s *Store) Note(ctx context.Context, room ring.RoomID, notes map[string]string, life time.Duration) error {
	if len(notes) == 0 || life <= 0 {
		return nil
	}
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for name, text := range notes {
			pipe.Set(ctx, s.keys.note(room, name), text, life)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note of room %s: %w", room, err)
	}
	return nil
}

// Notes returns the text of each note, or "" if there is none, in one round trip.
func (s *Store) Notes(ctx context.Context, room ring.RoomID, names ...string) ([]string, error) {
	texts := make([]string, len(names))
	if len(names) == 0 {
		return texts, nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = s.keys.note(room, name)
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, fmt.Errorf("read notes of room %s: %w", room, err)
	}
	for i, value := range values {
		// A missing note, and a key of another type, give nil.
		texts[i], _ = value.(string)
	}
	return texts, nil
}
