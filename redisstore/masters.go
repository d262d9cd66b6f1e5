package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type masters struct {
	mu        sync.Mutex
	byAddress map[string]*master
}

func (m *masters) at(address string) *master {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byAddress[address]
}

// all leaves out the servers that left.
func (m *masters) all() []*master {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(m.byAddress)), func(one *master) bool { return one.left.Load() })
}

func (s *Store) addMaster(options *redis.Options, open func() *redis.Client) *master {
	m := &master{keys: s.keys, log: s.log, panics: s.panics}
	options.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		return m.catch("a greeting of the store broke", func() error { return m.greet(ctx, conn) })
	}
	m.client = open()
	m.client.AddHook(s.trips)
	m.client.AddHook(s.measure)
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	s.masters.byAddress[options.Addr] = m
	return m
}

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

// movedTo returns the master that has a slot now, as the answer of its former master says; nil if that is unknown.
// The cluster client would follow the answer itself, but it would not tell the incarnation.
func (s *Store) movedTo(err error) *master {
	address, moved := redis.IsMovedError(err)
	if !moved {
		return nil
	}
	return s.masters.at(address)
}

// unreachable adds pin.ErrUnreachable to the error of a room.
func (s *Store) unreachable(ctx context.Context, room ring.RoomID, err error) error {
	if s.cluster == nil {
		return err
	}
	if m, unknown := s.masterOf(ctx, room); unknown == nil && m.silent.Load() {
		return fmt.Errorf("%w: %w", pin.ErrUnreachable, err)
	}
	return err
}

// Incarnations returns the incarnations of all masters, and writes markers that are missing. A pin that is written
// later lies in one of these or in a later one. After an error some are missing. A master that does not answer costs
// the others at most half of the time.
func (s *Store) Incarnations(ctx context.Context) ([]pin.Incarnation, error) {
	if s.sole != nil {
		g, err := s.sole.incarnation(ctx)
		if err != nil {
			return nil, err
		}
		return []pin.Incarnation{g}, nil
	}
	limited, cancel := halfOf(ctx)
	defer cancel()
	unlocated := s.locate(limited)
	// ForEachMaster calls its function concurrently.
	var mu sync.Mutex
	var all []pin.Incarnation
	err := s.cluster.ForEachMaster(limited, func(_ context.Context, client *redis.Client) error {
		m := s.masters.at(client.Options().Addr)
		if m == nil || m.marker.Load() == nil {
			// The master owns no slot.
			return nil
		}
		return m.catch("an incarnation broke its reading", func() error {
			g, err := m.incarnation(ctx)
			m.silent.Store(err != nil)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, g)
			}
			return err
		})
	})
	return all, errors.Join(unlocated, err)
}

func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// locate finds the slot of each master's marker. If no server answers, the known markers stay.
func (s *Store) locate(ctx context.Context) error {
	var ask redis.ClusterCmdable = s.cluster
	for _, m := range s.masters.all() {
		if m.marker.Load() != nil && !m.silent.Load() {
			ask = m.client
			break
		}
	}
	// go-redis names its clients after the addresses in CLUSTER SLOTS, not after those in CLUSTER SHARDS.
	slots, err := ask.ClusterSlots(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask the cluster for its slots: %w", err)
	}
	s.relocate(slots)
	return nil
}

// relocate follows the masters' slots. It keeps servers that left, because go-redis may use their clients again. A
// master's marker lies in the first of its slots in the order of markerRank, which every client knows.
func (s *Store) relocate(slots []redis.ClusterSlot) {
	first, listed := make(map[string]int), make(map[string]bool)
	for _, part := range slots {
		for _, node := range part.Nodes {
			listed[node.Addr] = true
		}
		if len(part.Nodes) == 0 {
			continue
		}
		address := part.Nodes[0].Addr
		for slot := max(part.Start, 0); slot <= min(part.End, slotCount-1); slot++ {
			if at, ok := first[address]; !ok || markerRank(slot) < markerRank(at) {
				first[address] = slot
			}
		}
	}
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	for address, m := range s.masters.byAddress {
		m.left.Store(len(listed) > 0 && !listed[address])
		slot, owns := first[address]
		if !owns {
			m.marker.Store(nil)
			continue
		}
		key := s.keys.markerIn(slot)
		if now := m.marker.Load(); now == nil || *now != key {
			m.marker.Store(&key)
		}
	}
}

// recheck wakes Run.
func (s *Store) recheck() {
	select {
	case s.rechecks <- struct{}{}:
	default:
	}
}

const (
	// relocateEvery bounds how long claims are slow after slots have moved.
	relocateEvery = 5 * time.Second
	renewTimeout  = time.Second
)

// Run writes missing markers and keeps connections ready until ctx ends, and returns nil.
func (s *Store) Run(ctx context.Context) error {
	moved, cold := time.NewTicker(relocateEvery), time.NewTicker(warmEvery)
	defer moved.Stop()
	defer cold.Stop()
	// Only a Cluster moves slots.
	if s.cluster == nil {
		moved.Stop()
	}
	for due := s.warm; ; {
		s.panics.Catch(s.log, "care for the store's connections broke", func() { due(ctx) })
		select {
		case <-ctx.Done():
			return nil
		case <-s.rechecks:
			due = s.renewMarkers
		case <-cold.C:
			due = s.warm
		case <-moved.C:
			due = s.renewMarkers
		}
	}
}

func (s *Store) renewMarkers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if _, err := s.Incarnations(ctx); err != nil && ctx.Err() == nil {
		s.log.Debug("incarnation of the store not known", "error", err)
	}
}

const slotCount = 16384

// markerRank orders the slots at random. Slots are moved from the lowest or the highest on: a marker there would move with each
// of them, and each time begin an incarnation in which no owner is synced yet. The first slot of a random order stays where it is
// unless it is moved itself, and one that comes seldom precedes it.
func markerRank(slot int) uint32 {
	x := uint32(slot+1) * 0x9e3779b1 //nolint:gosec // a slot is small
	x = (x ^ x>>15) * 0x85ebca6b
	return x ^ x>>13
}

// markerIn tries numbers until the hash tag of one is in the slot.
func (k keyspace) markerIn(slot int) string {
	for n := 0; ; n++ {
		if tag := strconv.Itoa(n); slotOf(tag) == slot {
			return string(k) + markerName + ":{" + tag + "}"
		}
	}
}

// slotOf is CRC16 (XMODEM) modulo slotCount.
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
