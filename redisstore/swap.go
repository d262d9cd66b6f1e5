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

// swapScript is the compare-and-set: ARGV = old text, new text (empty to delete), seconds, the instant after which nobody waits for the
// answer (microseconds of the store's own clock; 0 for none), and what stands for a key that is no string. It returns the
// store's time, whether the write came too late, and what stands afterwards, nil for an absent key.
//
// A server that was stopped for a while finds our requests in its socket buffers when it goes on, and would carry out
// moves of rooms that their callers gave up long ago. Redis 7 has no SET IFEQ, hence a script; it is sent whole
// each time (EVAL), because EVALSHA would cost a second round trip after every restart of the store.
const swapScript = `local now = redis.call('TIME')
local stands = redis.pcall('GET', KEYS[1])
if type(stands) == 'table' then
  if string.sub(stands.err, 1, 9) ~= 'WRONGTYPE' then return stands end
  stands = ARGV[5]
end
if stands ~= ARGV[1] then return {now[1], now[2], 0, stands} end
local latest = tonumber(ARGV[4])
if latest > 0 and tonumber(now[1]) * 1000000 + tonumber(now[2]) > latest then return {now[1], now[2], 1, stands} end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return {now[1], now[2], 0, false}
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return {now[1], now[2], 0, ARGV[2]}`

var (
	errLate   = errors.New("the store's clock says that the request came too late")
	errAnswer = errors.New("the store's answer to a script cannot be read")
)

// Swap replaces old by next; see orchestrator.Claims.
func (s *Store) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (pin.Pin, pin.Generation, error) {
	return s.exchange(ctx, room, old.Encode(), next)
}

// Repair replaces a value that is no pin by next; see orchestrator.Claims.
func (s *Store) Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	current, _, err := s.exchange(ctx, room, raw, next)
	return current, err
}

// removableAfter is how old a pin must be before it is removed. Its epoch is the millisecond of its claim by the store's clock, and the next claim of
// the room has to be above it. The clocks of a Redis Cluster's masters differ by less than that.
const removableAfter = 10 * time.Second

// Remove deletes p, and nothing else that stands for the room. A pin that was claimed within removableAfter stays.
func (s *Store) Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error) {
	if int64(p.Fence.Epoch) > s.Now().Add(-removableAfter).UnixMilli() { //nolint:gosec // pin.MaxEpoch is far below
		return false, nil
	}
	answer, err := s.swap(ctx, room, p.Encode(), "")
	if err != nil {
		return false, fmt.Errorf("remove the pin of room %s: %w", room, err)
	}
	return answer.absent, nil
}

// exchange replaces one text by next, and says in which generation. The store does not write when it sees the request
// after ctx has ended, as far as its clock is known.
func (s *Store) exchange(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, pin.Generation, error) {
	if err := next.Validate(); err != nil {
		return pin.Pin{}, 0, fmt.Errorf("swap the pin of room %s: %w", room, err)
	}
	answer, err := s.swap(ctx, room, raw, next.Encode())
	if answer.late { // Yet we are here and wait: its clock was set, and is known again. Once more.
		answer, err = s.swap(ctx, room, raw, next.Encode())
	}
	switch {
	case err != nil:
		return pin.Pin{}, 0, fmt.Errorf("swap the pin of room %s: %w", room, err)
	case answer.late:
		return pin.Pin{}, 0, fmt.Errorf("swap the pin of room %s: %w", room, errLate)
	}
	if answer.in == 0 {
		s.doubt()
	}
	if answer.absent {
		return pin.Pin{}, answer.in, nil
	}
	current, err := parse(room, answer.stands)
	return current, answer.in, err
}

// swapped is the answer of swapScript.
type swapped struct {
	late   bool
	absent bool
	stands string
	in     pin.Generation
}

// swap runs swapScript once, at the room's master.
func (s *Store) swap(ctx context.Context, room ring.RoomID, raw, next string) (swapped, error) {
	if s.sole != nil {
		return s.sole.swap(ctx, room, raw, next)
	}
	if m, err := s.masterOf(ctx, room); err == nil {
		if answer, err := m.swap(ctx, room, raw, next); err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
	// As for a claim: the client of the whole cluster finds the way, and neither the generation nor the time there is known.
	s.cluster.ReloadState(ctx)
	found, err := s.cluster.Eval(ctx, swapScript, []string{s.keys.pin(room)}, swapArgs(raw, next, 0)...).Slice()
	if err != nil {
		return swapped{}, err
	}
	answer, _, err := readSwapped(found)
	return answer, err
}

// swap runs swapScript and reads the marker after it, in one round trip: see master.fly for the order.
func (m *master) swap(ctx context.Context, room ring.RoomID, raw, next string) (swapped, error) {
	pipe := m.client.Pipeline()
	script := pipe.Eval(ctx, swapScript, []string{m.keys.pin(room)}, swapArgs(raw, next, m.clock.latest(ctx))...)
	var marker *redis.StringCmd
	if key := m.marker.Load(); key != nil {
		marker = pipe.Get(ctx, *key)
	}
	_, _ = pipe.Exec(ctx) // Each command carries its own error.
	found, err := script.Slice()
	if err != nil {
		return swapped{}, err
	}
	answer, micros, err := readSwapped(found)
	if err != nil {
		return swapped{}, err
	}
	m.clock.learn(micros)
	if marker != nil {
		answer.in = m.generationOf(marker.Result())
	}
	return answer, nil
}

// swapArgs are the arguments of swapScript.
func swapArgs(raw, next string, latest int64) []any {
	return []any{raw, next, int(pinTTL.Seconds()), latest, wrongType}
}

// readSwapped reads the answer of swapScript, with the store's time.
func readSwapped(found []any) (answer swapped, micros int64, err error) {
	if len(found) != 4 {
		return swapped{}, 0, errAnswer
	}
	late, _ := found[2].(int64)
	stands, present := found[3].(string)
	return swapped{late: late != 0, absent: !present, stands: stands}, timeOf(found[0], found[1]), nil
}
