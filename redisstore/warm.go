package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// warmConns is how many connections to each server are kept ready: making one takes four round trips, longer than
	// a join may take where the store is far away.
	warmConns = 4
	// warmEvery is how often a connection is pinged, and warmTimeout bounds that.
	warmEvery   = time.Second
	warmTimeout = 2 * time.Second
)

// warm keeps connections to each server ready.
func (s *Store) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, m := range s.masters.all() {
		all.Go(func() { m.warm(ctx) })
	}
	all.Wait()
}

// warm pings the server over one connection, which shows whether it was restarted. Where it was, or too few
// connections are idle, warm pings over warmConns side by side.
func (m *master) warm(ctx context.Context) {
	tries := 1
	if m.cold.Load() || m.client.PoolStats().IdleConns < warmConns {
		tries = warmConns
	}
	var all sync.WaitGroup
	trips, failed := make([]time.Duration, tries), make([]error, tries)
	for i := range tries {
		all.Go(func() {
			began := time.Now()
			failed[i] = m.client.Ping(ctx).Err()
			trips[i] = time.Since(began)
		})
	}
	all.Wait()
	cold := slices.ContainsFunc(failed, func(err error) bool { return err != nil })
	m.cold.Store(cold)
	if !cold {
		m.claims.took(slices.Min(trips))
	}
}
