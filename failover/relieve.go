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
	// A signaling node knows only rooms with sockets here, so one at a time relieves.
	turnLasts = time.Minute
	// By then load reports show the last one's moves.
	turnBegins = settleLimit + 5*time.Second
)

// relieve waits during a death or a drain, which need the headroom.
func (f *Failover) relieve(ctx context.Context, owned *sync.WaitGroup, view *cluster.View) {
	if f.relief == nil || !view.Settled || f.unrest(view) {
		return
	}
	now, mine := time.Now(), f.hasTurn(time.Now())
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
		if !mine { // it only learns heat
			continue
		}
		for _, room := range f.rooms.PinnedTo(n.Boot) {
			if room.Expect.Measured {
				rooms = append(rooms, relief.Room{ID: room.Room, On: n.ID, Sends: room.Expect.Cost()})
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

// All agree without asking.
func (f *Failover) hasTurn(now time.Time) bool {
	turn := now.Truncate(turnLasts)
	who, _ := ring.Rendezvous(f.signalingNodes(), "relief "+strconv.FormatInt(turn.Unix(), 10))
	return who == f.config.Self && now.Sub(turn) >= turnBegins
}
