package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// This is twice the time that a pin lives without a refresh, so no reader has the forbidden pin any more.
	tombstoneLife = 2 * time.Hour
	// These take about 10 MB.
	maxTombstones = 50_000
)

type tombstone struct {
	room  ring.RoomID
	fence pin.Fence
	// code is what an Attach is refused with.
	code  control.Refusal
	until time.Time
}

// tombstones remember final refusals. They are not safe for concurrent use.
type tombstones struct {
	byRoom map[ring.RoomID]*tombstone
	// order has the oldest first, and also those that were laid again since.
	order []*tombstone
}

func newTombstones() *tombstones {
	return &tombstones{byRoom: map[ring.RoomID]*tombstone{}}
}

// lay remembers a refusal, unless one under a higher fence is remembered.
func (t *tombstones) lay(room ring.RoomID, fence pin.Fence, code control.Refusal, now time.Time) {
	if old, ok := t.byRoom[room]; ok && fence.Less(old.fence) {
		return
	}
	stone := &tombstone{room: room, fence: fence, code: code, until: now.Add(tombstoneLife)}
	t.byRoom[room] = stone
	t.order = append(t.order, stone)
	t.sweep(now)
}

// forbids returns the refusal that still holds for the room under this fence.
func (t *tombstones) forbids(room ring.RoomID, fence pin.Fence, now time.Time) (tombstone, bool) {
	found, ok := t.byRoom[room]
	if !ok || !now.Before(found.until) || found.fence.Less(fence) {
		return tombstone{}, false
	}
	return *found, true
}

// sweep forgets what is too old or too much.
func (t *tombstones) sweep(now time.Time) {
	for len(t.order) > 0 {
		oldest := t.order[0]
		stands := t.byRoom[oldest.room] == oldest
		if stands && now.Before(oldest.until) && len(t.order) <= maxTombstones {
			return
		}
		t.order = t.order[1:]
		if stands {
			delete(t.byRoom, oldest.room)
		}
	}
}
