package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// warmConns is how many connections to each server are kept ready: making one takes four round trips, more than a join may
	// take where the store is far away. More than a handful are needed only in bursts, which make their own.
	warmConns = 4
	// warmEvery is how often one connection is tried, and warmTimeout bounds that.
	warmEvery   = time.Second
	warmTimeout = 2 * time.Second
)

// warm tries the connections to each server. They are used in turn only when several are used at once, so one try finds out
// whether the server has been restarted, and the others follow where it has, or where too few are there.
func (s *Store) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, m := range s.everyMaster() {
		all.Go(func() { m.warm(ctx) })
	}
	all.Wait()
}

// everyMaster is every server that there is a client of.
func (s *Store) everyMaster() []*master {
	if s.sole != nil {
		return []*master{s.sole}
	}
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	all := make([]*master, 0, len(s.masters.byAddress))
	for _, m := range s.masters.byAddress {
		all = append(all, m)
	}
	return all
}

// warm pings the server over as many connections as are to be ready.
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
