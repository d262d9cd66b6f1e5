package cluster

import (
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Liveness says whether a boot of a media node lives.
type Liveness string

// The states of a boot. Unknown does not mean dead.
const (
	Live Liveness = "live"
	// Replaced means that a newer boot has its name.
	Replaced Liveness = "replaced"
	// Departed means that it died or left; see View.Gone.
	Departed Liveness = "departed"
	Unknown  Liveness = "unknown"
)

// Liveness returns Unknown for a nil view.
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
