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
	text, err := textOf(s.cluster.SetArgs(ctx, s.keys.pin(c.room), c.pin.Encode(), claimArgs()).Result())
	if errors.Is(err, redis.Nil) {
		return claimed{text: c.pin.Encode(), won: true}, nil
	}
	return claimed{text: text}, err
}

// Get returns the pin that stands, and false when there is none.
func (s *Store) Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error) {
	text, err := textOf(s.client.Get(ctx, s.keys.pin(room)).Result())
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

// wrongType stands for the value of a key that holds no string. It is no pin, so it is handled as any damage is, and
// repaired by compare-and-set on this text.
const wrongType = "\x00 not a string"

// textOf is what a command said of a pin's key.
func textOf(text string, err error) (string, error) {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return wrongType, nil
	}
	return text, err
}

// parse reads a stored text; what is no pin becomes a *pin.CorruptError.
func parse(room ring.RoomID, text string) (pin.Pin, error) {
	if text == wrongType {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: text, Why: fmt.Errorf("%w: its key holds no text", pin.ErrCorrupt)}
	}
	p, err := pin.Parse(text)
	if err != nil {
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: text, Why: err}
	}
	return p, nil
}
