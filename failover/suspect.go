package failover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover/suspicion"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// suspect moves rooms off a node that is silent, to the nodes that stand by for them, before its death is believed. The people of these rooms notice
// nothing of a move, so nobody is harmed if the node lives. Its other rooms wait. Only the detector's loop calls it.
func (f *Failover) suspect(ctx context.Context, moving *sync.WaitGroup, view *cluster.View) {
	if f.isIsolated() {
		return
	}
	var nodes []suspicion.Node
	watched := map[ring.NodeID]*watching{}
	for _, w := range f.watches() {
		if node, live := view.Nodes[w.node.ID]; !live || node.Boot != w.node.Boot {
			continue
		}
		watched[w.node.ID] = w
		silence, unanswered := w.health.silence()
		nodes = append(nodes, suspicion.Node{ID: w.node.ID, Silence: silence, Unanswered: unanswered})
	}
	local := map[ring.RoomID]LocalRoom{}
	rooms := func(of ring.NodeID) (all []suspicion.Room) {
		if !view.Nodes[of].Can(control.CapabilityStandby) {
			return nil
		}
		for _, room := range f.rooms.PinnedTo(watched[of].node.Boot) {
			if standby := nodeOf(view, room.WholeAt); standby != "" && !room.Spread {
				local[room.Room] = room
				all = append(all, suspicion.Room{ID: room.Room, Standby: standby, People: max(room.Expect.People, room.Peers)})
			}
		}
		return all
	}
	node, moves := f.suspicion.Next(f.clock.now(), f.clock.onTime(), nodes, rooms)
	if len(moves) == 0 {
		return
	}
	why := fmt.Sprintf("%s: no heartbeat for %s, no answer for %s", pin.WhySilent, node.Silence.Round(time.Millisecond), node.Unanswered.Round(time.Millisecond))
	f.log.Warn("node silent: rooms go on at their standbys", "node", node.ID, "boot", watched[node.ID].node.Boot, "rooms", len(moves),
		"last_heartbeat_ms", milliseconds(node.Silence), "no_answer_ms", milliseconds(node.Unanswered))
	for _, m := range moves {
		f.beginSparing(ctx, moving, local[m.Room], m.To, why)
	}
}

// nodeOf returns the live node of a boot.
func nodeOf(view *cluster.View, boot pin.BootID) ring.NodeID {
	for id, node := range view.Nodes {
		if boot != "" && node.Boot == boot {
			return id
		}
	}
	return ""
}

func (f *Failover) beginSparing(ctx context.Context, moving *sync.WaitGroup, room LocalRoom, to ring.NodeID, why string) {
	key := moveKey{room.Room, room.Pin.Boot}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, running := f.active[key]; running || len(f.active) >= maxActive {
		return
	}
	f.active[key] = struct{}{}
	slot := f.storeSlots.queue(0, room.Peers)
	moving.Go(func() {
		f.catch("a move off a silent node broke", func() { f.spare(ctx, room, to, why, slot) }, "room", key.room)
		f.mu.Lock()
		delete(f.active, key)
		f.mu.Unlock()
		// The silent node is told of the move as soon as it answers.
		f.reconcileNow()
	})
}

// spare moves one room. A failure changes nothing: the room waits for its node's death or return.
func (f *Failover) spare(ctx context.Context, room LocalRoom, to ring.NodeID, why string, slot *waiter) {
	started := time.Now()
	next, err := f.spareTo(ctx, room, to, why, slot)
	if err != nil {
		f.log.Info("room stays on a silent node", "room", room.Room, "node", room.Pin.Node, "to", to, "error", err)
		return
	}
	f.log.Info("room re-homed", "room", room.Room, "to", next.Node, "epoch", next.Fence.Epoch, "took_ms", milliseconds(time.Since(started)))
	f.moves.add(room.Room, room.Pin, next)
	failpoint.Hit("notify.before")
	f.rooms.Moved(ctx, room.Room, next)
}

func (f *Failover) spareTo(ctx context.Context, room LocalRoom, to ring.NodeID, why string, slot *waiter) (pin.Pin, error) {
	if err := f.storeSlots.acquire(ctx, slot); err != nil {
		return pin.Pin{}, err
	}
	defer f.storeSlots.release()
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	next, err := f.rehomer.Move(ctx, room.Room, room.Pin, to, room.Expect, why)
	if err == nil && !room.Pin.Fence.Less(next.Fence) {
		return pin.Pin{}, fmt.Errorf("%w than %s", errLower, room.Pin.Fence)
	}
	return next, err
}
