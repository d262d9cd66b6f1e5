package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// masters are the servers of a Redis Cluster that we have a client of.
type masters struct {
	mu        sync.Mutex // guards byAddress
	byAddress map[string]*master
}

// at returns the server of an address, or nil.
func (m *masters) at(address string) *master {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byAddress[address]
}

// newMember makes the client of one server of a Redis Cluster.
func (s *Store) newMember(options *redis.Options) *redis.Client {
	m := &master{keys: s.keys, log: s.log}
	options.OnConnect = m.greet
	m.client = redis.NewClient(options)
	m.client.AddHook(s.trips)
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	s.masters.byAddress[options.Addr] = m
	return m.client
}

// masterOf returns the server that owns the room's slot.
func (s *Store) masterOf(ctx context.Context, room ring.RoomID) (*master, error) {
	client, err := s.cluster.MasterForKey(ctx, s.keys.pin(room))
	if err != nil {
		return nil, err
	}
	m := s.masters.at(client.Options().Addr)
	if m == nil || m.client != client {
		return nil, fmt.Errorf("%s: %w", client.Options().Addr, errNoMarker)
	}
	return m, nil
}

// Generations returns the present generation of every master that takes writes, and begins one where none stands.
// Whoever asserts pins asks this first: what is written afterwards is written in these generations
// or in later ones. An error means that some are missing; those returned are right all the same.
func (s *Store) Generations(ctx context.Context) ([]pin.Generation, error) {
	if s.sole != nil {
		g, err := s.sole.generation(ctx)
		if err != nil {
			return nil, err
		}
		return []pin.Generation{g}, nil
	}
	if err := s.locate(ctx); err != nil {
		return nil, err
	}
	var mu sync.Mutex // ForEachMaster runs the masters side by side
	var all []pin.Generation
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		m := s.masters.at(client.Options().Addr)
		if m == nil || m.marker.Load() == nil {
			return nil // It owns no slot, so it has no pins.
		}
		g, err := m.generation(ctx)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			all = append(all, g)
		}
		return err
	})
	return all, err
}

// locate finds out which slot each master's marker lies in.
func (s *Store) locate(ctx context.Context) error {
	slots, err := s.cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // go-redis names its own clients after these addresses, not after those of CLUSTER SHARDS.
	if err != nil {
		return fmt.Errorf("ask the cluster for its slots: %w", err)
	}
	lowest := make(map[string]int)
	for _, part := range slots {
		if len(part.Nodes) == 0 {
			continue
		}
		address := part.Nodes[0].Addr
		if at, ok := lowest[address]; !ok || part.Start < at {
			lowest[address] = part.Start
		}
	}
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	for address, m := range s.masters.byAddress {
		slot, owns := lowest[address]
		if !owns {
			m.marker.Store(nil)
			continue
		}
		key := s.keys.markerIn(slot)
		if now := m.marker.Load(); now == nil || *now != key {
			m.marker.Store(&key)
		}
	}
	return nil
}

// doubt asks Run to look at the generations: a claim came back without one.
func (s *Store) doubt() {
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// relocateEvery is how often a client looks where the markers of a Redis Cluster lie: after slots have moved there may be
// two on one master, and until everybody reads the same, every claim there is proven with all owners.
const relocateEvery = 5 * time.Second

// settleTimeout bounds one look at the generations by Run.
const settleTimeout = time.Second

// Run writes the markers of generations that a claim found missing or wrong, until ctx ends; then it returns nil.
func (s *Store) Run(ctx context.Context) error {
	moved, cold := time.NewTicker(relocateEvery), time.NewTicker(warmEvery)
	defer moved.Stop()
	defer cold.Stop()
	s.warm(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.doubts:
			s.settleDoubt(ctx)
		case <-cold.C:
			s.warm(ctx)
		case <-moved.C:
			if s.cluster != nil {
				s.settleDoubt(ctx)
			}
		}
	}
}

// settleDoubt writes the markers that are missing or wrong, so that owners have something to assert
// under. Its failure shows in the next claim.
func (s *Store) settleDoubt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if _, err := s.Generations(ctx); err != nil && ctx.Err() == nil {
		s.log.Debug("generation of the store not known", "error", err)
	}
}

// slotCount is how many hash slots a Redis Cluster has.
const slotCount = 16384

// markerIn is the key of a marker in a slot: the first number whose hash tag falls into it.
func (k keyspace) markerIn(slot int) string {
	for n := 0; ; n++ { // About 16,000 steps on average, and only when a slot changes hands.
		if tag := strconv.Itoa(n); slotOf(tag) == slot {
			return string(k) + markerName + ":{" + tag + "}"
		}
	}
}

// slotOf is the hash slot of a tag: CRC16 (XMODEM) modulo the number of slots.
func slotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slotCount
}
