package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Who sees half of the others go looks for them where they were, until it has them back or gives them up.
func TestWhoIsLonelyRemembersTheOthers(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	friends := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("10.0.0.%d:7946", i+1))
		}
		return all
	}
	var c company
	if !c.lonely(1) || c.lonely(2) {
		t.Fatal("nobody but ourselves is lonely, and two are not")
	}
	c = c.look(5, friends(4), at)
	for now, want := range map[int]bool{5: false, 4: false, 3: false, 2: true, 1: true} {
		if c.lonely(now) != want {
			t.Errorf("%d of 5 are lonely: %t", now, !want)
		}
	}
	later := at.Add(lonelyFor - time.Second)
	if cut := c.look(1, nil, later); cut.members != 5 || len(cut.friends) != 4 {
		t.Errorf("cut off it remembers %+v", cut)
	}
	if cut := c.look(2, friends(1), later); !slices.Equal(cut.friends, c.friends) || cut.members != 5 {
		t.Errorf("with one other it remembers %+v", cut)
	}
	if fewer := c.look(4, friends(3), later).look(3, friends(2), later).look(2, friends(1), later); !fewer.lonely(2) {
		t.Errorf("when they go one by one it remembers %+v", fewer)
	}
	if back := c.look(5, friends(4), later); back.since != later {
		t.Errorf("all are back, and it remembers %+v", back)
	}
	if gone := c.look(2, friends(1), at.Add(lonelyFor)); gone.members != 2 || gone.lonely(2) || len(gone.friends) != 1 {
		t.Errorf("those who do not come back are remembered for ever: %+v", gone)
	}
	if many := c.look(100, friends(99), at); len(many.friends) != maxFriends {
		t.Errorf("%d are remembered, want %d", len(many.friends), maxFriends)
	}
}
