package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// tombstoneLife is twice the hour that a pin lives in the store without
	// a refresh, so that no signaling node can still read a pin that a tombstone forbids.
	tombstoneLife = 2 * time.Hour
	// maxTombstones bounds the memory (about 10 MB). When it is full the oldest
	// is forgotten; the Owner, asked before anybody is served, still knows.
	maxTombstones = 50_000
)

// tombstone says that a room is not served here under its fence or a lower one.
type tombstone struct {
	fence pin.Fence
	code  control.Refusal // what is answered
	until time.Time
}

// tombstones remember final refusals. They are not safe for concurrent use.
type tombstones struct {
	byRoom map[ring.RoomID]tombstone
	order  []ring.RoomID // oldest first; a room that was laid twice is in it twice
}

func newTombstones() *tombstones {
	return &tombstones{byRoom: map[ring.RoomID]tombstone{}}
}

// lay forbids room under fence and below. A lower fence than the one already
// laid changes nothing.
func (t *tombstones) lay(room ring.RoomID, fence pin.Fence, code control.Refusal, now time.Time) {
	if old, ok := t.byRoom[room]; ok && fence.Less(old.fence) {
		return
	}
	t.byRoom[room] = tombstone{fence: fence, code: code, until: now.Add(tombstoneLife)}
	t.order = append(t.order, room)
	t.sweep(now)
}

// forbids reports whether room may not be served under fence, and why.
func (t *tombstones) forbids(room ring.RoomID, fence pin.Fence, now time.Time) (tombstone, bool) {
	found, ok := t.byRoom[room]
	if !ok || !now.Before(found.until) || found.fence.Less(fence) {
		return tombstone{}, false
	}
	return found, true
}

// sweep forgets what has expired, and the oldest past the bound.
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
