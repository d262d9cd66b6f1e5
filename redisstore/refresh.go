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

// batch is how many commands go into one pipeline: large enough that an owner of thousands of rooms refreshes them in 2 s over
// a slow link, small enough to block the server for about a millisecond.
const batch = 1024

// Refresh says what stands for each of the rooms held, and prolongs the pins of those that are due: GETEX instead of GET, which shows
// a foreign pin without overwriting it. Missing pins are claimed with the owner's own text, so the
// epoch is kept; if somebody claims in between, theirs is shown. One round trip a batch
// of rooms, and one more for a batch in which some were missing.
//
// It returns an error only when nothing could be learned about any room.
func (s *Store) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	found := make([]pin.Found, 0, len(held))
	for part := range slices.Chunk(held, batch) {
		found = append(found, s.refresh(ctx, part, due)...)
	}
	learned := len(held) == 0
	for _, f := range found {
		learned = learned || f.Err == nil || errors.Is(f.Err, pin.ErrCorrupt)
	}
	if !learned {
		return nil, fmt.Errorf("refresh %d pins: %w", len(held), found[0].Err)
	}
	return found, nil
}

// Prolong returns the pin that stands, or none, and lets it live as long as a new one from here: GETEX.
func (s *Store) Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	text, err := textOf(s.client.GetEx(ctx, s.keys.pin(room), pinTTL).Result())
	switch {
	case errors.Is(err, redis.Nil):
		return pin.Pin{}, nil
	case err != nil:
		return pin.Pin{}, fmt.Errorf("prolong the pin of room %s: %w", room, err)
	default:
		return parse(room, text)
	}
}

// refresh does one batch.
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
	_, _ = pipe.Exec(ctx) // Each command carries its own error.
	var missing []int
	for i, cmd := range seen {
		text, err := textOf(cmd.Result())
		switch {
		case errors.Is(err, redis.Nil):
			missing, found[i].Prolonged = append(missing, i), false
		case err != nil:
			found[i].Err = err
		default:
			found[i].Stands, found[i].Err = parse(found[i].Room, text)
		}
	}
	if len(missing) > 0 {
		s.assert(ctx, held, found, missing)
	}
	return found
}

// assert writes the pins that were missing again, unless somebody claims first.
func (s *Store) assert(ctx context.Context, held []pin.Holding, found []pin.Found, missing []int) {
	pipe := s.client.Pipeline()
	claims := make([]*redis.StatusCmd, len(missing))
	for i, at := range missing {
		claims[i] = pipe.SetArgs(ctx, s.keys.pin(held[at].Room), held[at].Pin.Encode(), claimArgs())
	}
	_, _ = pipe.Exec(ctx)
	for i, at := range missing {
		text, err := textOf(claims[i].Result())
		switch {
		case errors.Is(err, redis.Nil):
			found[at].Stands, found[at].Asserted, found[at].Prolonged = held[at].Pin, true, true
		case err != nil:
			found[at].Err = err
		default:
			found[at].Stands, found[at].Err = parse(found[at].Room, text)
		}
	}
}
