package signaling

import (
	"context"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// An owner that cannot reach the store goes on serving while its pin expires and the room opens elsewhere: its people learn of that
// from their signaling node, which reads the pins of its rooms again.
func TestRoomThatOpenedElsewhereIsFoundByReadingItsPinAgain(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	ada, _ := e.join("lobby", "Ada")

	e.hub.Reread(context.Background()) // Nothing has changed.
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.hub.Reread(context.Background())
	if restart := hear[*wire.Restart](ada); restart.Node != "sfu-2" || restart.Epoch != firstEpoch+1 {
		t.Fatalf("restart %+v, want one to sfu-2", restart)
	}
}
