package orchestrator

import (
	"fmt"
	"strings"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type passed struct {
	node ring.NodeID
	// share is load/ceiling with the room.
	share float64
	why   string
}

// The history names at most this many nodes of one choice.
const maxPassed = 3

// passedOver lists the nodes that come before the chosen one on the walk, with the reason why choose did not take
// them. It leaves out the nodes that the request avoids. The caller holds mu.
func (l *ledger) passedOver(view *cluster.View, room ring.RoomID, avoid avoidance, need headroom.Egress, made choice) []passed {
	if owner, _ := view.Ring.Owner(room); owner == made.node {
		return nil
	}
	var over []passed
	// The walk and the bound are those of choose, so the reasons are the ones that counted.
	limit := bound(l.totals(), need)
	for c := range l.walk(view, room, avoid) {
		if c.node == made.node || len(over) == maxPassed {
			break
		}
		why := string(fitOf(c, need, limit))
		switch c.barred {
		case barDead, barRefusedThis:
			continue
		case "":
		default:
			why = string(c.barred)
		}
		over = append(over, passed{node: c.node, share: c.load.Plus(need).Share(c.ceiling), why: why})
	}
	return over
}

func because(why string, over []passed) string {
	if len(over) == 0 {
		return why
	}
	var out strings.Builder
	out.WriteString(why)
	if why != "" {
		out.WriteString("; ")
	}
	out.WriteString(pin.PassedOver)
	for i, p := range over {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, "%s (%.0f %% with the room: %s)", p.node, 100*p.share, p.why)
	}
	return out.String()
}
