package failover

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/failover/relief"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// A signaling node knows only the rooms that have sockets here, so one node at a time relieves, for a minute
	// each.
	relieverFor = time.Minute
	// By this time the load reports include the moves of the previous reliever.
	relieverBegins = arrivalLimit + 5*time.Second
)

// relieve begins moves off hot nodes. It does nothing during a death or a drain, because their rooms need the
// headroom.
func (f *Failover) relieve(ctx context.Context, owned *sync.WaitGroup, view *cluster.View) {
	if f.relief == nil || !view.Settled || f.unrest(view) {
		return
	}
	now, mine := time.Now(), f.isReliever(time.Now())
	var nodes []relief.Node
	var rooms []relief.Room
	local := map[ring.RoomID]leaving{}
	for _, n := range view.Nodes {
		nodes = append(nodes, relief.Node{
			ID: n.ID, Open: !n.Draining && !n.Suspect && !n.Unreachable,
			Load:    headroom.Egress{BitsPerSecond: n.Load.EgressBitsPerSecond, PacketsPerSecond: n.Load.EgressPacketsPerSecond},
			Ceiling: headroom.Egress{BitsPerSecond: n.Load.CeilingBitsPerSecond, PacketsPerSecond: n.Load.CeilingPacketsPerSecond},
			Limited: n.Load.Limited > 0,
		})
		// A node that is not the reliever only remembers which nodes are hot, so that it can begin at once when it
		// becomes the reliever.
		if !mine {
			continue
		}
		for _, room := range f.rooms.PinnedTo(n.Boot) {
			if room.Expect.Measured {
				one := relief.Room{ID: room.Room, On: n.ID, Sends: room.Expect.Cost(), Spread: room.Spread}
				if f.config.Standby != nil {
					one.Standby = f.config.Standby(room.Room, n.ID, one.Sends)
				}
				rooms = append(rooms, one)
				local[room.Room] = leaving{room: room, node: n, live: true}
			}
		}
	}
	signalingNodes := len(f.signalingNodes())
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.relief.Next(now, nodes, rooms) {
		next := local[m.Room]
		next.to, next.why = m.To, "relief: "+m.Why
		ended := func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.relief.Ended(m.Room, time.Now())
		}
		if !f.beginLeaving(ctx, owned, next, signalingNodes, ended) {
			f.relief.Ended(m.Room, now)
		}
	}
}

func (f *Failover) unrest(view *cluster.View) bool {
	for _, n := range view.Nodes {
		if n.Draining {
			return true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wanted) > 0
}

// isReliever reports whether this node relieves at the time now. All signaling nodes come to the same result without
// asking each other, by rendezvous hashing of the minute.
func (f *Failover) isReliever(now time.Time) bool {
	minute := now.Truncate(relieverFor)
	elected, _ := ring.Rendezvous(f.signalingNodes(), "relief "+strconv.FormatInt(minute.Unix(), 10))
	return elected == f.config.Self && now.Sub(minute) >= relieverBegins
}
