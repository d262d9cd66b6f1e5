package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// warmConns are kept ready, because a new connection takes four round trips, too many at a far store.
	warmConns   = 4
	warmEvery   = time.Second
	warmTimeout = 2 * time.Second
)

func (s *Store) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	var all sync.WaitGroup
	// A look-up that leads to another master breaks the connections to the former one.
	if s.sentinels != nil {
		all.Go(func() { _, _ = s.sentinels.find(ctx) })
	}
	for _, m := range s.masters.all() {
		all.Go(func() { m.panics.Catch(m.log, "warming a master's connections broke", func() { m.warm(ctx) }) })
	}
	all.Wait()
}

// warm asks for the time over one connection, or over warmConns if they may be cold, because the clock may have been
// set.
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
			failed[i] = m.catch("a ping broke", func() error { return m.ping(ctx) })
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

func (m *master) ping(ctx context.Context) error {
	now, err := m.client.Time(ctx).Result()
	if err == nil {
		m.clock.learn(now.UnixMicro())
	}
	return err
}
