package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// pinTTL is longer than an outage of the owner or of the store.
const pinTTL = time.Hour

// Claim implements orchestrator.PinStore. Concurrent claims share a round trip.
func (s *Store) Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	err := p.Validate()
	if err == nil {
		err = ctx.Err()
	}
	var answer claimed
	if err == nil {
		answer = s.claim(ctx, &claim{room: room, pin: p, why: why})
		err = answer.err
	}
	if err != nil {
		return pin.Pin{}, 0, fmt.Errorf("claim room %s: %w", room, err)
	}
	if answer.in == 0 {
		s.recheck()
	}
	stands := p
	if !answer.won {
		stands, err = parse(room, answer.text)
	}
	if answer.door {
		err = errors.Join(err, waitlist.ErrDoor)
	}
	return stands, answer.in, err
}

func (s *Store) claim(ctx context.Context, c *claim) claimed {
	if s.sole != nil {
		return s.sole.claim(ctx, c)
	}
	m, err := s.masterOf(ctx, c.room)
	if err != nil {
		return claimed{err: err}
	}
	answer := m.claim(ctx, c)
	if to := s.movedTo(answer.err); to != nil {
		answer = to.claim(ctx, c)
	}
	if answer.err == nil || ctx.Err() != nil {
		return answer
	}
	// The slot is moving. The cluster client follows it, without the incarnation.
	s.cluster.ReloadState(ctx)
	ask := c.queue(ctx, s.keys, s.cluster.Pipeline())
	_, _ = ask.pipe.Exec(ctx)
	return ask.answer()
}

// Get returns false if the room has no pin.
func (s *Store) Get(ctx context.Context, room ring.RoomID) (pin.Pin, bool, error) {
	p, err := pinIn(room, s.client.Get(ctx, s.keys.pin(room)))
	if errors.Is(err, redis.Nil) {
		return pin.Pin{}, false, nil
	}
	if err != nil {
		return pin.Pin{}, false, fmt.Errorf("get the pin of room %s: %w", room, err)
	}
	return p, true, nil
}

func claimArgs() redis.SetArgs { return redis.SetArgs{Mode: "NX", Get: true, TTL: pinTTL} }

func claimedBy(cmd *redis.StatusCmd) claimed {
	text, err := textOf(cmd.Result())
	if errors.Is(err, redis.Nil) {
		return claimed{won: true}
	}
	return claimed{text: text, err: err}
}

// wrongType is the text that stands for a key of another type, so that Repair can replace the key.
const wrongType = "\x00 not a string"

func textOf(text string, err error) (string, error) {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return wrongType, nil
	}
	return text, err
}

func pinIn(room ring.RoomID, cmd interface{ Result() (string, error) }) (pin.Pin, error) {
	text, err := textOf(cmd.Result())
	if err != nil {
		return pin.Pin{}, err
	}
	return parse(room, text)
}

func parse(room ring.RoomID, text string) (p pin.Pin, err error) {
	if text == wrongType {
		err = fmt.Errorf("%w: its key holds no text", pin.ErrCorrupt)
	} else {
		p, err = pin.Parse(text)
	}
	switch {
	case errors.Is(err, pin.ErrLater):
		return pin.Pin{}, fmt.Errorf("room %s: %w", room, err)
	case err != nil:
		return pin.Pin{}, &pin.CorruptError{Room: room, Raw: text, Why: err}
	}
	return p, nil
}
