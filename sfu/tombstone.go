package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Twice a pin's life without refresh: by then no reader has a forbidden pin.
	tombstoneLife = 2 * time.Hour
	// About 10 MB.
	maxTombstones = 50_000
)

type tombstone struct {
	fence pin.Fence
	code  control.Refusal // the answer
	until time.Time
}

// tombstones remember final refusals. They are not safe for concurrent use.
type tombstones struct {
	byRoom map[ring.RoomID]tombstone
	order  []ring.RoomID // oldest first; repeated if laid again
}

func newTombstones() *tombstones {
	return &tombstones{byRoom: map[ring.RoomID]tombstone{}}
}

// lay ignores a fence below the present one.
func (t *tombstones) lay(room ring.RoomID, fence pin.Fence, code control.Refusal, now time.Time) {
	if old, ok := t.byRoom[room]; ok && fence.Less(old.fence) {
		return
	}
	t.byRoom[room] = tombstone{fence: fence, code: code, until: now.Add(tombstoneLife)}
	t.order = append(t.order, room)
	t.sweep(now)
}

func (t *tombstones) forbids(room ring.RoomID, fence pin.Fence, now time.Time) (tombstone, bool) {
	found, ok := t.byRoom[room]
	if !ok || !now.Before(found.until) || found.fence.Less(fence) {
		return tombstone{}, false
	}
	return found, true
}

func (t *tombstones) sweep(now time.Time) {
	for len(t.order) > 0 {
		room := t.order[0]
		stone, ok := t.byRoom[room]
		expired := ok && !now.Before(stone.until)
		if ok && !expired && len(t.order) <= maxTombstones {
			return
		}
		t.order = t.order[1:]
		if expired || len(t.order) >= maxTombstones {
			delete(t.byRoom, room)
		}
	}
}
