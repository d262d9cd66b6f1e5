package cluster

import (
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Liveness is of a media node's boot.
type Liveness string

// Unknown is not dead.
const (
	Live     Liveness = "live"
	Replaced Liveness = "replaced" // by a newer boot
	Departed Liveness = "departed" // dead or left; see View.Gone
	Unknown  Liveness = "unknown"
)

// Liveness is Unknown to a nil view.
func (v *View) Liveness(id ring.NodeID, boot pin.BootID) Liveness {
	if v == nil {
		return Unknown
	}
	node, ok := v.Nodes[id]
	switch {
	case ok && node.Boot == boot:
		return Live
	case ok && node.Boot.Newer(boot):
		return Replaced
	case v.Gone[boot] != "":
		return Departed
	default:
		return Unknown
	}
}
