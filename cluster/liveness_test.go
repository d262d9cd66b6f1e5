package cluster

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestLiveness(t *testing.T) {
	view := &View{
		Nodes: map[ring.NodeID]Node{"a": {ID: "a", Boot: "2"}},
		Gone:  map[pin.BootID]Departure{"1": DepartureDead, "9": DepartureLeft},
	}
	for _, c := range []struct {
		view *View
		id   ring.NodeID
		boot pin.BootID
		want Liveness
	}{
		{view, "a", "2", Live},
		{view, "a", "1", Replaced},
		{view, "a", "3", Unknown}, // The view is older than that boot.
		{view, "a", "9", Departed},
		{view, "b", "9", Departed},
		{view, "b", "8", Unknown},
		{nil, "a", "2", Unknown},
	} {
		if got := c.view.Liveness(c.id, c.boot); got != c.want {
			t.Errorf("boot %s of %s is %s, want %s", c.boot, c.id, got, c.want)
		}
	}
}
