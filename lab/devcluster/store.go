//go:build !node

package devcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// miniredis expires keys only when told the time.
const storeTick = 100 * time.Millisecond

// Store is a Redis in memory, over TCP.
type Store struct {
	redis *miniredis.Miniredis
}

// OpenStore binds the store to host:port.
func OpenStore(address string) (*Store, error) {
	redis := miniredis.NewMiniRedis()
	if err := redis.StartAddr(address); err != nil {
		return nil, fmt.Errorf("open the embedded store: %w", err)
	}
	return &Store{redis: redis}, nil
}

// Address returns the store's host:port.
func (s *Store) Address() string { return s.redis.Addr() }

// Run expires keys until ctx ends, then closes the store.
func (s *Store) Run(ctx context.Context) error {
	defer s.redis.Close()
	tick := time.NewTicker(storeTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			now := time.Now()
			s.redis.FastForward(now.Sub(last))
			last = now
		}
	}
}
