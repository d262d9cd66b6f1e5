package sfu

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestTombstonesForbidTheirFenceAndBelow(t *testing.T) {
	now := time.UnixMilli(1769000000000)
	stones := newTombstones()
	stones.lay("a", pin.Fence{Epoch: 5, Nonce: 5}, control.Refusal_REFUSAL_NO_HEADROOM, now)
	stones.lay("a", pin.Fence{Epoch: 4, Nonce: 9}, control.Refusal_REFUSAL_DRAINING, now)
	for _, c := range []struct {
		room  ring.RoomID
		fence pin.Fence
		after time.Duration
		want  bool
	}{
		{"a", pin.Fence{Epoch: 5, Nonce: 5}, 0, true},
		{"a", pin.Fence{Epoch: 5, Nonce: 4}, 0, true},
		{"a", pin.Fence{Epoch: 4, Nonce: 9}, time.Hour, true},
		{"a", pin.Fence{Epoch: 5, Nonce: 6}, 0, false},
		{"a", pin.Fence{Epoch: 6, Nonce: 0}, 0, false},
		{"b", pin.Fence{Epoch: 1, Nonce: 0}, 0, false},
		{"a", pin.Fence{Epoch: 5, Nonce: 5}, tombstoneLife, false},
	} {
		stone, got := stones.forbids(c.room, c.fence, now.Add(c.after))
		if got != c.want {
			t.Errorf("forbids(%s, %v) after %v = %v, want %v", c.room, c.fence, c.after, got, c.want)
		}
		if got && stone.code != control.Refusal_REFUSAL_NO_HEADROOM {
			t.Errorf("forbids(%s, %v) says %v", c.room, c.fence, stone.code)
		}
	}
}

func TestTombstonesAreBounded(t *testing.T) {
	now := time.UnixMilli(1769000000000)
	stones := newTombstones()
	for i := range maxTombstones + 10 {
		stones.lay(ring.RoomID(fmt.Sprint(i)), pin.Fence{Epoch: 1}, control.Refusal_REFUSAL_FENCED, now)
	}
	if len(stones.byRoom) > maxTombstones || len(stones.order) > maxTombstones {
		t.Fatalf("%d tombstones, %d in order, want at most %d", len(stones.byRoom), len(stones.order), maxTombstones)
	}
	if _, ok := stones.forbids(ring.RoomID(fmt.Sprint(maxTombstones+9)), pin.Fence{Epoch: 1}, now); !ok {
		t.Error("the newest tombstone was forgotten")
	}
	stones.lay("last", pin.Fence{Epoch: 1}, control.Refusal_REFUSAL_FENCED, now.Add(tombstoneLife))
	if len(stones.byRoom) != 1 || len(stones.order) != 1 {
		t.Fatalf("%d tombstones, %d in order after all have expired, want the last one", len(stones.byRoom), len(stones.order))
	}
}

func TestARoomThatIsLaidAgainHoldsUpNoSweep(t *testing.T) {
	now := time.UnixMilli(1769000000000)
	stones := newTombstones()
	lay := func(room ring.RoomID, epoch uint64, after time.Duration) {
		stones.lay(room, pin.Fence{Epoch: epoch}, control.Refusal_REFUSAL_FENCED, now.Add(after))
	}
	lay("a", 1, 0)
	lay("b", 1, 0)
	lay("a", 2, time.Hour)
	lay("c", 1, tombstoneLife)
	if _, kept := stones.byRoom["b"]; kept || len(stones.order) != 2 {
		t.Errorf("%d in order, want a and c; b, whose time has run out, is kept: %v", len(stones.order), kept)
	}
	if _, ok := stones.forbids("a", pin.Fence{Epoch: 2}, now.Add(tombstoneLife)); !ok {
		t.Error("the tombstone that was laid again was forgotten with the earlier one")
	}
}

func TestAFullListForgetsNoTombstoneThatWasLaidAgain(t *testing.T) {
	now := time.UnixMilli(1769000000000)
	stones := newTombstones()
	for i := range maxTombstones - 1 {
		stones.lay("a", pin.Fence{Epoch: uint64(i)}, control.Refusal_REFUSAL_FENCED, now)
	}
	for i := range 10 {
		stones.lay("a", pin.Fence{Epoch: uint64(maxTombstones + i)}, control.Refusal_REFUSAL_FENCED, now)
		if _, ok := stones.forbids("a", pin.Fence{Epoch: uint64(maxTombstones + i)}, now); !ok {
			t.Fatalf("the tombstone just laid was forgotten, with %d in order", len(stones.order))
		}
	}
}
