package node

import (
	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu"
)

// neighbours are the media nodes that stand by for this one.
type neighbours struct {
	self ring.NodeID
	view func() *cluster.View
	pool *control.Pool
}

// Client is part of sfu.Neighbours.
func (n *neighbours) Client(at string) (control.StandbyClient, error) { return n.pool.Standby(at) }

// Standby is part of sfu.Neighbours.
func (n *neighbours) Standby(room ring.RoomID, before ring.NodeID, need headroom.Egress, promised map[ring.NodeID]headroom.Egress) (sfu.Neighbour, bool) {
	node, found := orchestrator.Standby(n.view(), room, n.self, before, need, promised)
	return sfu.Neighbour{Node: node.ID, Boot: node.Boot, Control: node.Control, Media: node.MediaSockets()}, found
}
