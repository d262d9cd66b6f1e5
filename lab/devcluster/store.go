//go:build !node

package devcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// storeTick is how often the store's clock advances: miniredis expires keys only when told that time has passed.
const storeTick = 100 * time.Millisecond

// Store is the embedded Redis of a development cluster, over TCP and in memory.
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

// Run lets the store's keys expire until ctx ends, then closes it.
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
