package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// People look at a room the day after.
const historyTTL = 24 * time.Hour

// History has a room's latest swaps, newest first, without those of later versions.
func (s *Store) History(ctx context.Context, room ring.RoomID) ([]pin.Change, error) {
	texts, err := s.client.LRange(ctx, s.keys.history(room), 0, pin.MaxChanges-1).Result()
	if err != nil {
		return nil, fmt.Errorf("history of room %s: %w", room, err)
	}
	changes := make([]pin.Change, 0, len(texts))
	for _, text := range texts {
		if change, err := pin.ParseChange(text); err == nil {
			changes = append(changes, change)
		}
	}
	return changes, nil
}
