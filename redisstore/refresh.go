package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// roomsPerPipeline bounds a pipeline to a millisecond of the server's time.
	roomsPerPipeline = 1024
	// silentTimeout is how long one master is waited for. The caller then uses the answers of the others.
	silentTimeout = 300 * time.Millisecond
)

// Refresh prolongs the pins that are due, overwrites no pin, and claims missing pins again. It takes one round trip,
// or two if pins are missing. After an error nothing is known.
func (s *Store) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	found, rooms := make([]pin.Found, len(held)), make([]ring.RoomID, len(held))
	for i, h := range held {
		found[i].Room, found[i].Prolonged, found[i].Err = h.Room, due(h), errBroke
		rooms[i] = h.Room
	}
	s.onMasters(ctx, rooms, "refreshing pins broke", func(ctx context.Context, part []int) {
		for some := range slices.Chunk(part, roomsPerPipeline) {
			s.refresh(ctx, held, found, some)
		}
	})
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

// onMasters calls do for each master with the places of its rooms, all masters at once.
func (s *Store) onMasters(ctx context.Context, rooms []ring.RoomID, broke string, do func(ctx context.Context, part []int)) {
	parts := map[*master][]int{}
	for i, room := range rooms {
		m := s.sole
		if m == nil {
			// If the master is unknown, the client finds it.
			m, _ = s.masterOf(ctx, room)
		}
		parts[m] = append(parts[m], i)
	}
	var all sync.WaitGroup
	for m, part := range parts {
		all.Go(func() {
			ctx := ctx
			if m != nil && m.silent.Load() {
				limited, cancel := context.WithTimeout(ctx, silentTimeout)
				defer cancel()
				ctx = limited
			}
			s.panics.Catch(s.log, broke, func() { do(ctx, part) })
		})
	}
	all.Wait()
}

func (s *Store) refresh(ctx context.Context, held []pin.Holding, found []pin.Found, some []int) {
	pipe := s.client.Pipeline()
	seen := make([]*redis.StringCmd, len(some))
	for i, at := range some {
		if found[at].Prolonged {
			seen[i] = pipe.GetEx(ctx, s.keys.pin(held[at].Room), pinTTL)
		} else {
			seen[i] = pipe.Get(ctx, s.keys.pin(held[at].Room))
		}
	}
	_, _ = pipe.Exec(ctx)
	var missing []int
	for i, at := range some {
		found[at].Stands, found[at].Err = pinIn(found[at].Room, seen[i])
		if errors.Is(found[at].Err, redis.Nil) {
			missing, found[at].Prolonged = append(missing, at), false
		}
	}
	if len(missing) > 0 {
		s.restore(ctx, held, found, missing)
	}
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
