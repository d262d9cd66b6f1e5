package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// The index says which rooms a node has, so that a sweep after its death need not scan
// the whole store. It lies in another slot than the pins and is written after them, by
// Run, so it can miss a room and can name one that has moved. Nothing depends on it: PinsOf
// checks every entry against the pin, and AllPins finds what it misses.
const (
	// maxNotes bounds the queue to Run. When it is full (Run is not running, or the store
	// hangs) further notes are dropped; the owner's refresh repeats them.
	maxNotes = 1024
	// notesPerTrip is how many notes are written in one round trip.
	notesPerTrip = 64
	// noteTimeout bounds one round trip of Run.
	noteTimeout = time.Second
	// indexTTL: owners repeat their rooms every few seconds; a node that is gone
	// for good must not leave a set behind.
	indexTTL = 2 * pinTTL
	// relocateEvery is how often a client looks where the markers of a Redis Cluster lie: after slots have moved there may be
	// two on one master, and until everybody reads the same, every claim there is proven with all owners.
	relocateEvery = 5 * time.Second
)

// note is one change of the index.
type note struct {
	node  ring.NodeID
	rooms []ring.RoomID
	gone  bool // take the rooms out
}

// note queues a change of the index, or drops it when the queue is full.
func (s *Store) note(n note) {
	select {
	case s.notes <- n:
	default:
	}
}

// Run writes the index, and the markers of generations that a claim found wrong, until ctx
// ends; then it returns nil.
func (s *Store) Run(ctx context.Context) error {
	failing := false
	moved := time.NewTicker(relocateEvery)
	defer moved.Stop()
	for {
		var queued []note
		select {
		case <-ctx.Done():
			return nil
		case n := <-s.notes:
			queued = append(queued, n)
		case <-s.doubts:
			s.settleDoubt(ctx)
			continue
		case <-moved.C:
			if s.cluster != nil {
				s.settleDoubt(ctx)
			}
			continue
		}
		for len(queued) < notesPerTrip && len(s.notes) > 0 {
			queued = append(queued, <-s.notes)
		}
		err := s.writeNotes(ctx, queued)
		if ctx.Err() != nil {
			return nil
		}
		if (err != nil) != failing { // One line per change, not one per failure.
			failing = err != nil
			s.log.Warn("index of rooms by node", "failing", failing, "error", err)
		}
	}
}

// writeNotes writes some changes in one round trip.
func (s *Store) writeNotes(ctx context.Context, notes []note) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	pipe := s.client.Pipeline()
	changes := make(map[string]*redis.IntCmd, len(notes))
	for _, n := range notes {
		key, members := indexKey(n.node), make([]any, len(n.rooms))
		for i, room := range n.rooms {
			members[i] = string(room)
		}
		if n.gone {
			changes[key] = pipe.SRem(ctx, key, members...)
			continue
		}
		changes[key] = pipe.SAdd(ctx, key, members...)
		pipe.Expire(ctx, key, indexTTL)
	}
	_, err := pipe.Exec(ctx)
	for key, change := range changes {
		if redis.HasErrorPrefix(change.Err(), "WRONGTYPE") { // It is no set: the next refreshes make it anew.
			s.log.Warn("index of rooms by node is damaged, and deleted", "key", key)
			_ = s.client.Del(ctx, key).Err() // If that fails the next note tries again.
		}
	}
	return err
}

// PinsOf returns the rooms pinned to node as far as the index knows: every one returned was
// pinned to node when it was looked up, but some may be missing (AllPins finds them). Entries
// that are out of date are taken out.
func (s *Store) PinsOf(ctx context.Context, node ring.NodeID) ([]pin.Holding, error) {
	members, err := s.client.SMembers(ctx, indexKey(node)).Result()
	if err != nil {
		return nil, fmt.Errorf("read the index of node %s: %w", node, err)
	}
	var held []pin.Holding
	var stale []ring.RoomID
	for part := range slices.Chunk(members, batch) {
		rooms := make([]ring.RoomID, len(part))
		for i, member := range part {
			rooms[i] = ring.RoomID(member)
		}
		err := s.pinsOf(ctx, rooms, func(room ring.RoomID, p pin.Pin, stands bool) {
			if stands && p.Node == node {
				held = append(held, pin.Holding{Room: room, Pin: p})
			} else {
				stale = append(stale, room)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("check the index of node %s: %w", node, err)
		}
	}
	if len(stale) > 0 {
		s.note(note{node: node, rooms: stale, gone: true})
	}
	return held, nil
}

// pinsOf looks up some rooms in one round trip and calls each for every one of them, in
// order. Corrupt pins are logged and count as not standing.
func (s *Store) pinsOf(ctx context.Context, rooms []ring.RoomID, each func(ring.RoomID, pin.Pin, bool)) error {
	pipe := s.client.Pipeline()
	gets := make([]*redis.StringCmd, len(rooms))
	for i, room := range rooms {
		gets[i] = pipe.Get(ctx, pinKey(room))
	}
	_, _ = pipe.Exec(ctx) // Each command carries its own error.
	for i, get := range gets {
		text, err := textOf(get.Result())
		if errors.Is(err, redis.Nil) {
			each(rooms[i], pin.Pin{}, false)
			continue
		}
		if err != nil {
			return err
		}
		p, err := parse(rooms[i], text)
		if err != nil {
			s.log.Warn("corrupt pin", "room", rooms[i], "error", err)
		}
		each(rooms[i], p, err == nil)
	}
	return nil
}
