package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// The semaphore never admits more than its places, serves the largest first, and loses no place when
// waiters give up.
func TestPrioritySemaphore(t *testing.T) {
	for range 20 { // acquire of an admitted waiter whose context has ended may go either way
		testPrioritySemaphore(t)
	}
}

func testPrioritySemaphore(t *testing.T) {
	t.Helper()
	s := &prioritySemaphore{free: 2}
	first, second := s.queue(0, 1), s.queue(0, 1)
	small, large, gone := s.queue(0, 5), s.queue(0, 50), s.queue(0, 500)
	admitted := func(w *waiter) bool {
		select {
		case <-w.admitted:
			return true
		default:
			return false
		}
	}
	if !admitted(first) || !admitted(second) || admitted(small) || admitted(large) || admitted(gone) {
		t.Fatal("not the first two are admitted")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.acquire(cancelled, gone); !errors.Is(err, context.Canceled) {
		t.Fatalf("acquire = %v", err)
	}
	s.release()
	if !admitted(large) || admitted(small) {
		t.Fatal("the larger one is not the next")
	}
	if err := s.acquire(cancelled, second); err == nil { // It was admitted, so either may win: the place must not be lost.
		s.release()
	}
	if !admitted(small) {
		t.Fatal("an abandoned place is lost")
	}
	s.release()
	s.release()
	if s.free != 2 || s.waiting.Len() != 0 {
		t.Fatalf("%d places free, %d waiting", s.free, s.waiting.Len())
	}
}

func TestMovesAreBoundedAndKeepTheHighestPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoves()
		from := pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "n", Boot: "old", Control: "n:1"}
		to := func(epoch uint64) pin.Pin { return pin.Pin{Fence: pin.Fence{Epoch: epoch}, Node: "m", Boot: "new"} }
		for i := range movesPerBoot + 5 {
			m.add(ring.RoomID(fmt.Sprint(i)), from, to(2))
		}
		m.add("10", from, to(9))
		m.add("10", from, to(3))
		if _, _, lost := m.untold("old"); len(lost) != movesPerBoot {
			t.Fatalf("%d moves remembered, want %d", len(lost), movesPerBoot)
		}
		if _, _, ok := m.to(moveKey{"0", "old"}); ok {
			t.Fatal("the oldest move is still there")
		}
		if p, _, ok := m.to(moveKey{"10", "old"}); !ok || p.Fence.Epoch != 9 {
			t.Fatalf("room 10 went to %v, want epoch 9", p)
		}
		m.tell(moveKey{"10", "old"}, to(9).Fence)
		if _, _, lost := m.untold("old"); len(lost) != movesPerBoot-1 {
			t.Fatalf("%d untold, want one less", len(lost))
		}
		m.add("10", from, to(10))
		if _, _, lost := m.untold("old"); len(lost) != movesPerBoot {
			t.Fatal("a move to a higher pin is not told again")
		}
		own := from
		own.Fence.Epoch = 5
		m.add("own", from, own)
		if _, _, ok := m.to(moveKey{"own", "old"}); ok {
			t.Fatal("a boot would be told that it fences itself")
		}
		for i := range bootsOfMoves {
			other := from
			other.Boot = pin.BootID(fmt.Sprint("boot ", i))
			m.add("r", other, to(2))
		}
		if got := len(m.pending()); got != bootsOfMoves || len(m.boots) != bootsOfMoves {
			t.Fatalf("%d boots remembered, at most %d", got, bootsOfMoves)
		}
		time.Sleep(movesLifetime + time.Second) //nolint:forbidigo // the bubble's clock
		if got := len(m.pending()); got != 0 || len(m.boots) != 0 {
			t.Fatalf("%d boots remembered after an hour", got)
		}
	})
}

// Run ends while rooms wait for the store and for an answer, and leaves nothing
// running (goleak looks at that).
func TestRunEndsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.startSFU("sfu-1")
		w.startSFU("sfu-2")
		w.startSignaling("signaling-1")
		for i := range 100 {
			w.room(ring.RoomID(fmt.Sprint(i)), "sfu-2", []string{"signaling-1=20"})
		}
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		w.change(func() { w.kill("sfu-2") })
		time.Sleep(2 * time.Second) //nolint:forbidigo // the bubble's clock
		w.change(func() { w.store.down = true })
		w.change(func() { w.sfus["sfu-1"].frozen = true })
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		w.stop()
	})
}

// 500 rooms move while the store fails at times: each ends on the store's pin, and none is swapped twice.
func TestManyRoomsMoveOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		w.startSFU("sfu-1")
		w.startSFU("sfu-2")
		w.startSignaling("signaling-1")
		w.startSignaling("signaling-2")
		const rooms = 500
		for i := range rooms {
			w.room(ring.RoomID(fmt.Sprint(i)), "sfu-2", []string{"signaling-1=1", "signaling-2=1"})
		}
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		w.change(func() { w.kill("sfu-2") })
		for range 5 {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the bubble's clock
			w.change(func() { w.store.down = !w.store.down })
		}
		w.change(func() { w.store.down = false })
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.store.swaps != rooms {
			t.Errorf("%d swaps of %d rooms", w.store.swaps, rooms)
		}
		for room, stands := range w.store.pins {
			for name, e := range w.signalingNodes {
				if local := e.rooms[room].Pin; local != stands || stands.Fence.Epoch != 101 {
					t.Fatalf("%s serves room %s under %v, the store has %v", name, room, local, stands)
				}
			}
		}
	})
}
