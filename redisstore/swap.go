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

var (
	errLate   = errors.New("the store's clock says that the request came too late")
	errAnswer = errors.New("the store's answer to a script cannot be read")
)

// Swap implements orchestrator.PinStore.
func (s *Store) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	return s.exchange(ctx, room, old.Encode(), next, pin.Change{From: old.Node, Why: why})
}

// Repair implements orchestrator.PinStore.
func (s *Store) Repair(ctx context.Context, room ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	current, _, err := s.exchange(ctx, room, raw, next, pin.Change{Why: pin.WhyDamaged})
	return current, err
}

// removableAfter protects a young pin, because the next claim must get a higher epoch.
const removableAfter = 10 * time.Second

// Remove deletes p if it is current and older than removableAfter.
func (s *Store) Remove(ctx context.Context, room ring.RoomID, p pin.Pin) (removed bool, err error) {
	if int64(p.Fence.Epoch) > s.Now().Add(-removableAfter).UnixMilli() { //nolint:gosec // the largest epoch is far below
		return false, nil
	}
	answer, err := s.swap(ctx, room, p.Encode(), "", "")
	if err != nil {
		return false, fmt.Errorf("remove the pin of room %s: %w", room, err)
	}
	if answer.absent {
		s.followGone(ctx, room)
	}
	return answer.absent, nil
}

// exchange writes nothing after ctx has ended, if the store's clock is known.
func (s *Store) exchange(ctx context.Context, room ring.RoomID, raw string, next pin.Pin, noted pin.Change) (pin.Pin, pin.Incarnation, error) {
	noted.Epoch, noted.To = next.Fence.Epoch, next.Node
	err := next.Validate()
	var answer swapped
	if err == nil {
		answer, err = s.swap(ctx, room, raw, next.Encode(), noted.Encode())
	}
	// The store's clock was set in between.
	if answer.late {
		answer, err = s.swap(ctx, room, raw, next.Encode(), noted.Encode())
	}
	if err == nil && answer.late {
		err = errLate
	}
	if err != nil {
		return pin.Pin{}, 0, fmt.Errorf("swap the pin of room %s: %w", room, err)
	}
	if answer.in == 0 {
		s.recheck()
	}
	if answer.absent {
		return pin.Pin{}, answer.in, nil
	}
	current, err := parse(room, answer.stands)
	return current, answer.in, err
}

type swapped struct {
	micros int64
	late   bool
	absent bool
	stands string
	in     pin.Incarnation
}

func (s *Store) swap(ctx context.Context, room ring.RoomID, raw, next, noted string) (swapped, error) {
	if s.sole != nil {
		return s.sole.swap(ctx, room, raw, next, noted)
	}
	if m, err := s.masterOf(ctx, room); err == nil {
		answer, err := m.swap(ctx, room, raw, next, noted)
		if to := s.movedTo(err); to != nil {
			answer, err = to.swap(ctx, room, raw, next, noted)
		}
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
	// As in Store.claim.
	s.cluster.ReloadState(ctx)
	return swappedBy(evalSwap(ctx, s.cluster, s.keys, room, raw, next, noted, 0))
}

// swap reads the marker last, as master.send does.
func (m *master) swap(ctx context.Context, room ring.RoomID, raw, next, noted string) (swapped, error) {
	pipe := m.client.Pipeline()
	script := evalSwap(ctx, pipe, m.keys, room, raw, next, noted, m.clock.latest(ctx))
	marker := m.readMarker(ctx, pipe)
	_, _ = pipe.Exec(ctx)
	answer, err := swappedBy(script)
	if err != nil {
		return swapped{}, err
	}
	m.clock.learn(answer.micros)
	answer.in = m.incarnationOf(marker.Result())
	return answer, nil
}

func evalSwap(ctx context.Context, to redis.Cmdable, keys keyspace, room ring.RoomID, raw, next, noted string, latest int64) *redis.Cmd {
	return to.Eval(ctx, swapScript, []string{keys.pin(room), keys.roster(room), keys.door(room), keys.history(room)},
		raw, next, int(pinTTL.Seconds()), latest, wrongType, int(orphanTTL.Seconds()), noted, pin.MaxChanges-1, int(historyTTL.Seconds()))
}

func swappedBy(cmd *redis.Cmd) (swapped, error) {
	found, err := cmd.Slice()
	if err != nil {
		return swapped{}, err
	}
	if len(found) != 3 {
		return swapped{}, errAnswer
	}
	micros, _ := found[0].(int64)
	late, _ := found[1].(int64)
	stands, present := found[2].(string)
	return swapped{micros: micros, late: late != 0, absent: !present, stands: stands}, nil
}
