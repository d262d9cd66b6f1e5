package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// swapScript is the compare-and-set: ARGV = old text, new text, seconds, the instant after which nobody waits for the
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
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return {now[1], now[2], 0, ARGV[2]}`

var (
	errLate   = errors.New("the store's clock says that the request came too late")
	errAnswer = errors.New("the store's answer to a script cannot be read")
)

// Swap replaces old by next; see orchestrator.Claims.
func (s *Store) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin) (pin.Pin, error) {
	current, err := s.Repair(ctx, room, old.Encode(), next)
	if err == nil && current == next && old.Node != next.Node {
		s.note(note{node: old.Node, rooms: []ring.RoomID{room}, gone: true})
	}
	return current, err
}

// Repair replaces a value that is no pin by next; see orchestrator.Claims. The store does not write when it sees the request
// after ctx has ended, as far as its clock is known.
func (s *Store) Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	if err := next.Validate(); err != nil {
		return pin.Pin{}, fmt.Errorf("swap the pin of room %s: %w", room, err)
	}
	answer, err := s.swap(ctx, room, raw, next.Encode())
	if answer.late { // Yet we are here and wait: its clock was set, and is known again. Once more.
		answer, err = s.swap(ctx, room, raw, next.Encode())
	}
	switch {
	case err != nil:
		return pin.Pin{}, fmt.Errorf("swap the pin of room %s: %w", room, err)
	case answer.late:
		return pin.Pin{}, fmt.Errorf("swap the pin of room %s: %w", room, errLate)
	case answer.absent:
		return pin.Pin{}, nil
	}
	current, err := parse(room, answer.stands)
	if err == nil && current == next {
		s.note(note{node: next.Node, rooms: []ring.RoomID{room}})
	}
	return current, err
}

// swapped is the answer of swapScript.
type swapped struct {
	late   bool
	absent bool
	stands string
}

// swap runs swapScript once.
func (s *Store) swap(ctx context.Context, room ring.RoomID, raw, next string) (swapped, error) {
	clock := s.clockFor(ctx, room)
	answer, err := s.client.Eval(ctx, swapScript, []string{pinKey(room)},
		raw, next, int(pinTTL.Seconds()), clock.latest(ctx), wrongType).Slice()
	if err != nil {
		return swapped{}, err
	}
	if len(answer) != 4 {
		return swapped{}, errAnswer
	}
	clock.learn(timeOf(answer[0], answer[1]))
	late, _ := answer[2].(int64)
	stands, present := answer[3].(string)
	return swapped{late: late != 0, absent: !present, stands: stands}, nil
}

// clockFor is the clock of the server that has the room's pin; one that nobody reads if that is not known.
func (s *Store) clockFor(ctx context.Context, room ring.RoomID) *clock {
	if s.sole != nil {
		return &s.sole.clock
	}
	m, err := s.masterOf(ctx, room)
	if err != nil {
		return &clock{}
	}
	return &m.clock
}
