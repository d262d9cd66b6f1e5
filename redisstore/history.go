package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// historyTTL is enough for the day after.
const historyTTL = 24 * time.Hour

// noteClaim adds the reason of a claim to the room's history. Its answer is not read: a claim is good without its
// reason.
func (c *claim) noteClaim(ctx context.Context, keys keyspace, pipe redis.Pipeliner) {
	if c.why == "" {
		return
	}
	change := pin.Change{Epoch: c.pin.Fence.Epoch, To: c.pin.Node, Why: c.why}
	pipe.Eval(ctx, claimScript, []string{keys.pin(c.room), keys.history(c.room)},
		c.pin.Encode(), change.Encode(), pin.MaxChanges-1, int(historyTTL.Seconds()))
}

// History implements orchestrator.PinStore. Changes that a later version wrote are left out.
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
