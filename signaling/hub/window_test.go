package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var (
	pinBefore = pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"}
	pinAfter  = pin.Pin{Fence: pin.Fence{Epoch: 2}, Node: "b", Boot: "b2"}
)

// crowd is a hub, one of so many, whose rooms have so many sessions. The first tenth of each show something.
func crowd(nodes int, rooms map[ring.RoomID]int) (*Hub, map[ring.RoomID][]*client) {
	h := newHub(nodes)
	all := make(map[ring.RoomID][]*client)
	for room, people := range rooms {
		for i := range people {
			s := newClient(room)
			s.shown = i < people/10
			h.Enter(s, pinBefore)
			all[room] = append(all[room], s)
		}
	}
	return h, all
}

// windowsLeft waits for timers that have fired.
func windowsLeft(h *Hub) int {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.windows)
}

// heard takes the pins that were posted.
func heard(sessions []*client) (who []*client) {
	for _, s := range sessions {
		select {
		case <-s.moves:
			who = append(who, s)
		default:
		}
	}
	return who
}

// TestAMoveIsToldAWindowAtATime: who is shown first, the next when one has arrived, and everybody once.
func TestAMoveIsToldAWindowAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, all := crowd(2, map[ring.RoomID]int{"large": 200})
		sessions := all["large"]
		h.Moved(context.Background(), "large", pinAfter)
		first := heard(sessions)
		if len(first) != moveWindow/2 || len(heard(sessions[:20])) != 0 {
			t.Fatalf("%d were told at once, want %d", len(first), moveWindow/2)
		}
		for _, s := range sessions[:20] {
			if h.windows["b2"].under[s] == nil {
				t.Fatal("one who is shown was not among the first")
			}
		}
		h.Arrived(first[0], "b2")
		h.Leave(first[1])
		if next := heard(sessions); len(next) != 2 {
			t.Fatalf("%d were told when two no longer counted", len(next))
		}
		sum := len(first) + 2
		for range 200 {
			if windowsLeft(h) == 0 {
				break
			}
			<-time.After(onTheWay + 1)
			synctest.Wait()
			sum += len(heard(sessions))
		}
		if left := windowsLeft(h); sum != 200 || left != 0 {
			t.Fatalf("%d of 200 were told, and %d windows are left", sum, left)
		}
	})
}

// TestRoomsShareTheWindow: a small room does not wait for a large one.
func TestRoomsShareTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, all := crowd(1, map[ring.RoomID]int{"large": 200, "small": 3})
		h.Moved(context.Background(), "large", pinAfter)
		h.Moved(context.Background(), "small", pinAfter)
		for _, s := range heard(all["large"])[:6] {
			h.Arrived(s, "b2")
		}
		if got := len(heard(all["small"])); got != 3 {
			t.Errorf("%d of the small room's three were told after six of the large one had arrived", got)
		}
		h.Moved(context.Background(), "small", pin.Pin{Fence: pin.Fence{Epoch: 3}, Node: "c", Boot: "b3"})
		if got := len(heard(all["small"])); got != 3 {
			t.Errorf("%d of three were told of another node at once", got)
		}
	})
}

// TestWhoWaitsHearsOfTheLatestNode: a node that dies while clients wait for it is not one that they hear of.
func TestWhoWaitsHearsOfTheLatestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, all := crowd(1, map[ring.RoomID]int{"large": 100})
		h.Moved(context.Background(), "large", pinAfter)
		waiting := len(all["large"]) - len(heard(all["large"]))
		latest := pin.Pin{Fence: pin.Fence{Epoch: 3}, Node: "c", Boot: "b3"}
		h.Moved(context.Background(), "large", latest)
		for range 10 {
			for _, s := range all["large"] {
				select {
				case p := <-s.moves:
					if p != latest {
						t.Fatalf("told of %s", p.Node)
					}
				default:
				}
			}
			<-time.After(onTheWay + 1)
			synctest.Wait()
		}
		if left := windowsLeft(h); waiting != 100-moveWindow || left != 0 {
			t.Errorf("%d waited, and %d windows are left", waiting, left)
		}
	})
}

// TestOneNamesEverybody: the others of a large room spare the new node its roster, until a link to that node has ended.
func TestOneNamesEverybody(t *testing.T) {
	h, _ := crowd(1, map[ring.RoomID]int{"large": 3})
	for _, step := range []struct {
		told pin.Pin // introduce
		want bool    // introduced under pinAfter
	}{{pinBefore, false}, {pinAfter, true}, {pin.Pin{}, false}} {
		h.Introduce("large", step.told)
		h.Introduce("elsewhere", pinAfter)
		if got := h.Introduced("large", pinAfter); got != step.want || h.Introduced("elsewhere", pinAfter) || h.Introduced("large", pin.Pin{}) {
			t.Errorf("after %v: introduced is %v, want %v", step.told, got, step.want)
		}
	}
}

// TestWhoIsSeenHasAHeadStart: in a large room, whose people all wait for the same cameras.
func TestWhoIsSeenHasAHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, all := crowd(2, map[ring.RoomID]int{"large": 100, "small": 10})
		for _, s := range all["large"] {
			s.load = &headroom.Room{People: 200, Cameras: 10}
		}
		for room := range all {
			h.Moved(t.Context(), room, pinAfter)
		}
		if large, small := heard(all["large"]), heard(all["small"]); len(large) != 10 || len(small) != 10 {
			t.Errorf("at once %d of the large room go and %d of the small one, want 10 and 10", len(large), len(small))
		}
		<-time.After(headStart)
		synctest.Wait()
		if rest := heard(all["large"]); len(rest) != moveWindow/2-20 {
			t.Errorf("after the head start %d go, want %d", len(rest), moveWindow/2-20)
		}
		<-time.After(time.Second)
		if windowsLeft(h) != 0 || len(heard(all["large"])) != 100-10-(moveWindow/2-20) {
			t.Error("not everybody went")
		}
	})
}
