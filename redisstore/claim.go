package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// pinTTL is how long a pin outlives the last refresh by its owner. An hour is far
// longer than any outage of a store that can be ridden out, and short enough
// that the pins of forgotten rooms do not gather.
const pinTTL = time.Hour

// swapScript is the compare-and-set: ARGV = old text, new text, seconds. It returns what
// stands afterwards, or nil for an absent key. Redis 7 has no SET IFEQ, hence a script; it is
// sent whole each time (EVAL), because EVALSHA would cost a second round trip
// after every restart of the store.
const swapScript = `local stands = redis.call('GET', KEYS[1])
if stands ~= ARGV[1] then return stands end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return ARGV[2]`

// Claim is SET NX GET EX: it writes p unless the room has a pin, and returns the
// one that stands, and the generation of the store that it stands in (zero when that is not
// known). Never GET first: between the two another edge may claim. One round trip, shared with
// other claims that are made at the same time.
func (s *Store) Claim(ctx context.Context, room ring.RoomID, p pin.Pin) (pin.Pin, pin.Generation, error) {
	if err := p.Validate(); err != nil {
		return pin.Pin{}, 0, fmt.Errorf("claim room %s: %w", room, err)
	}
	if err := ctx.Err(); err != nil {
		return pin.Pin{}, 0, fmt.Errorf("claim room %s: %w", room, err)
	}
	answer, err := s.claim(ctx, &claim{room: room, pin: p})
	if err != nil {
		return pin.Pin{}, 0, fmt.Errorf("claim room %s: %w", room, err)
	}
	if answer.in == 0 {
		s.doubt()
	}
	if answer.won {
		s.note(note{node: p.Node, rooms: []ring.RoomID{room}})
		return p, answer.in, nil
	}
	stands, err := parse(room, answer.text)
	return stands, answer.in, err
}

// claim finds the room's master and claims there.
func (s *Store) claim(ctx context.Context, c *claim) (claimed, error) {
	if s.sole != nil {
		answer := s.sole.claim(ctx, c)
		return answer, answer.err
	}
	m, err := s.masterOf(ctx, c.room)
	if err != nil {
		return claimed{}, err
	}
	answer := m.claim(ctx, c)
	if answer.err == nil || ctx.Err() != nil {
		return answer, answer.err
	}
	// The slot has moved, or its owner is gone: the client of the whole cluster finds the way, and
	// the generation there is not known.
	s.cluster.ReloadState(ctx)
	text, err := s.cluster.SetArgs(ctx, pinKey(c.room), c.pin.Encode(), claimArgs()).Result()
	if errors.Is(err, redis.Nil) {
		return claimed{text: c.pin.Encode(), won: true}, nil
	}
	return claimed{text: text}, err
}

// Swap replaces old by next; see orchestrator.Claims.
func (s *Store) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (pin.Pin, error) {
	current, err := s.Repair(ctx, room, old.Encode(), next)
	if err == nil && current == next && old.Node != next.Node {
		s.note(note{node: old.Node, rooms: []ring.RoomID{room}, gone: true})
	}
	return current, err
}

// Repair replaces a value that is no pin by next; see orchestrator.Claims.
func (s *Store) Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	if err := next.Validate(); err != nil {
		return pin.Pin{}, fmt.Errorf("swap the pin of room %s: %w", room, err)
	}
	text, err := s.client.Eval(ctx, swapScript, []string{pinKey(room)}, raw, next.Encode(), int(pinTTL.Seconds())).Text()
	if errors.Is(err, redis.Nil) {
		return pin.Pin{}, nil
	}
	if err != nil {
		return pin.Pin{}, fmt.Errorf("swap the pin of room %s: %w", room, err)
	}
	current, err := parse(room, text)
	if err == nil && current == next {
		s.note(note{node: next.Node, rooms: []ring.RoomID{room}})
	}
	return current, err
}

// Get returns the pin that stands, and false when there is none.
func (s *Store) Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error) {
	text, err := s.client.Get(ctx, pinKey(room)).Result()
	if errors.Is(err, redis.Nil) {
		return pin.Pin{}, false, nil
	}
	if err != nil {
		return pin.Pin{}, false, fmt.Errorf("get the pin of room %s: %w", room, err)
	}
	p, err := parse(room, text)
	return p, err == nil, err
}

// claimArgs are the options of the claiming SET.
func claimArgs() redis.SetArgs { return redis.SetArgs{Mode: "NX", Get: true, TTL: pinTTL} }

// parse reads a stored text; what is no pin becomes a *pin.CorruptError.
func parse(room ring.RoomID, text string) (pin.Pin, error) {
	p, err := pin.Parse(text)
	if err != nil {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: text, Why: err}
	}
	return p, nil
}
