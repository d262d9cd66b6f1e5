package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// perCheckIn bounds one script.
	perCheckIn = 500
	listed     = 200
)

// Enter implements orchestrator.PinStore. Concurrent claims share a round trip.
func (s *Store) Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	var err error
	if !p.IsZero() {
		err = p.Validate()
	}
	if err == nil {
		err = ctx.Err()
	}
	var answer claimed
	if err == nil {
		answer = s.claim(ctx, &claim{room: room, pin: p, why: why, entry: &e})
		err = answer.err
	}
	if err != nil {
		return pin.Pin{}, 0, waitlist.Answer{}, fmt.Errorf("enter room %s: %w", room, err)
	}
	if answer.in == 0 {
		s.recheck()
	}
	switch {
	case answer.won:
		return p, answer.in, answer.admission, nil
	// The room has no pin.
	case answer.text == "" && !answer.door:
		return pin.Pin{}, answer.in, answer.admission, nil
	}
	stands, err := parse(room, answer.text)
	return stands, answer.in, answer.admission, err
}

func evalEnter(ctx context.Context, to redis.Cmdable, keys keyspace, c *claim) *redis.Cmd {
	e, text := c.entry, ""
	if !c.pin.IsZero() {
		text = c.pin.Encode()
	}
	return to.Eval(ctx, enterScript, keys.waitingKeys(c.room), caps(e.Cap, e.Usual), "", 0, e.Identity, e.Ticket, ones(e.Wait), e.Hold.Milliseconds(),
		text, int(pinTTL.Seconds()), wrongType, ones(e.Host), e.Name, e.Peer)
}

// enteredBy reads a script's answer. It sets door if there is a pin.
func enteredBy(cmd *redis.Cmd) claimed {
	found, err := cmd.Slice()
	if err != nil {
		return claimed{err: err}
	}
	if len(found) != 11 {
		return claimed{err: errAnswer}
	}
	outcome, ok := number(found[0])
	position, ok1 := number(found[1])
	p, ok2 := paceOf(found[3], found[4])
	ticket, ok3 := number(found[5])
	won, ok4 := number(found[8])
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || outcome < 0 || outcome > int64(waitlist.Inside) || position < 0 {
		return claimed{err: errAnswer}
	}
	writer, _ := found[6].(string)
	owing, _ := found[7].(string)
	settings, _ := found[9].(string)
	stands, present := found[10].(string)
	return claimed{
		won: won == 1, text: stands, door: present,
		admission: waitlist.Answer{
			Outcome: waitlist.Outcome(outcome), Ticket: ticket, Roster: writer != "", Owing: owing, Settings: settings,
			Place: waitlist.Place{Position: int(position), Reason: reasonOf(found[2]), Pace: p},
		},
	}
}

// CheckIn asks for many rooms in one round trip. A room without an answer has an Err.
func (s *Store) CheckIn(ctx context.Context, rooms []waitlist.Asked) []waitlist.Checked {
	type part struct {
		to    int
		who   []string
		reply *redis.Cmd
	}
	var parts []part
	answers := make([]waitlist.Checked, len(rooms))
	pipe := s.client.Pipeline()
	for i, asked := range rooms {
		answers[i].Room = asked.Room
		for who := range slices.Chunk(asked.Who, perCheckIn) {
			args := []any{caps(asked.Cap, asked.Usual), asked.Dead, 2}
			for _, one := range who {
				args = append(args, one)
			}
			parts = append(parts, part{i, who, pipe.Eval(ctx, checkInScript, s.keys.waitingKeys(asked.Room), args...)})
		}
	}
	if len(parts) == 0 {
		return answers
	}
	// Each command has its own error.
	_, _ = pipe.Exec(ctx)
	for _, one := range parts {
		checkedBy(&answers[one.to], len(one.who), one.reply)
	}
	return answers
}

func checkedBy(answer *waitlist.Checked, people int, cmd *redis.Cmd) {
	found, err := cmd.Slice()
	if err == nil && len(found) != 5+people {
		err = errAnswer
	}
	if err != nil {
		answer.Err = errors.Join(answer.Err, fmt.Errorf("check in at room %s: %w", answer.Room, err))
		return
	}
	p, ok := paceOf(found[1], found[2])
	answer.Reason, answer.Pace = reasonOf(found[0]), p
	answer.Roster, _ = found[3].(string)
	answer.Owing, _ = found[4].(string)
	for _, field := range found[5:] {
		place, fine := number(field)
		ok = ok && fine && place >= waitlist.TurnedAway
		answer.Places = append(answer.Places, int(place))
	}
	if !ok {
		answer.Err = errors.Join(answer.Err, fmt.Errorf("check in at room %s: %w", answer.Room, errAnswer))
	}
}

// Door carries an order out and returns the door, in one round trip. It may be repeated.
func (s *Store) Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	limit, closed, described := "", "", ""
	if o.Cap != nil {
		limit = strconv.Itoa(*o.Cap)
	}
	if o.Closed != nil {
		closed = strconv.Itoa(ones(*o.Closed))
	}
	if o.Describe != nil {
		described = *o.Describe
		// Before the room is described, so that a list of rooms never misses one.
		if err := s.noteDescribed(ctx, room); err != nil {
			return waitlist.Door{}, err
		}
	}
	found, err := s.client.Eval(ctx, doorScript, s.keys.waitingKeys(room), caps(waitlist.NoCap, 0), o.Vacant, ones(o.Over), string(o.Deed), o.Identity, limit, closed, listed, o.Peer, described).Slice()
	if err != nil {
		return waitlist.Door{}, fmt.Errorf("door of room %s: %w", room, err)
	}
	door, err := readDoor(found)
	if err != nil {
		return waitlist.Door{}, fmt.Errorf("door of room %s: %w", room, err)
	}
	return door, nil
}

func caps(own, usual int) string { return fmt.Sprint(own, " ", usual) }

func ones(fact bool) int {
	if fact {
		return 1
	}
	return 0
}

func readDoor(found []any) (waitlist.Door, error) {
	const head, each = 9, 3
	if len(found) < head || len(found)%each != head%each {
		return waitlist.Door{}, errAnswer
	}
	var numbers [5]int64
	ok := true
	for i := range numbers {
		n, fine := number(found[i])
		numbers[i], ok = n, ok && fine
	}
	p, fine := paceOf(found[5], found[6])
	owner, isText := found[7].(string)
	described, isDescription := found[8].(string)
	if !ok || !fine || !isText || !isDescription {
		return waitlist.Door{}, errAnswer
	}
	door := waitlist.Door{
		Done: numbers[0] == 1, Cap: int(numbers[1]), Closed: numbers[2] == 1, Inside: int(numbers[3]), Length: int(numbers[4]), Pace: p, Pin: owner, Described: described,
	}
	for one := range slices.Chunk(found[head:], each) {
		who, isText := one[0].(string)
		ticket, fine := number(one[1])
		name, named := one[2].(string)
		if !isText || !fine || !named {
			return waitlist.Door{}, errAnswer
		}
		waiter := waitlist.Waiter{Identity: who, Name: name}
		if ticket > 0 {
			waiter.Since = time.UnixMicro(ticket)
		}
		door.Line = append(door.Line, waiter)
	}
	return door, nil
}

// number reads an integer, or a text of one.
func number(field any) (int64, bool) {
	switch n := field.(type) {
	case int64:
		return n, true
	case string:
		// A score may be written as 1e15.
		f, err := strconv.ParseFloat(n, 64)
		if err != nil || !(f > -1<<53 && f < 1<<53) {
			return 0, false
		}
		return int64(f), true
	default:
		return 0, false
	}
}

func paceOf(left, since any) (waitlist.Pace, bool) {
	n, ok := number(left)
	ms, fine := number(since)
	if !ok || !fine || n < 0 || ms < 0 || ms > time.Hour.Milliseconds()*2 {
		return waitlist.Pace{}, false
	}
	return waitlist.Pace{Left: int(n), Since: time.Duration(ms) * time.Millisecond}, true
}

func reasonOf(field any) waitlist.Reason {
	text, _ := field.(string)
	switch reason := waitlist.Reason(text); reason {
	case waitlist.Closed, waitlist.NoCapacity, waitlist.Settling:
		return reason
	default:
		return waitlist.Full
	}
}
