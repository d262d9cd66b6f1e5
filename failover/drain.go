package failover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// These bounds hold for all signaling nodes together, because a live move costs every client two connections. A
	// single room may be larger than the bound.
	peopleLeavingAtOnce = 64
	roomsLeavingAtOnce  = 4
	leastPeopleLeaving  = 8
	// The new owner declares the move over within 8 s, so the wait may end after 10 s.
	arrivalLimit = 10 * time.Second
	arrivalPoll  = 50 * time.Millisecond
	leaveAgain   = 2 * time.Second
)

type leaving struct {
	room LocalRoom
	node cluster.Node
	// With live, clients connect to the new node before they leave the old one.
	live bool
	// Placement chooses the node if to is empty.
	to  ring.NodeID
	why string
}

func (l leaving) key() moveKey { return moveKey{l.room.Room, l.room.Pin.Boot} }

func (l leaving) people() int { return max(l.room.Expect.People, l.room.Peers) }

type staying struct {
	again time.Time
	tries int
}

// leavers counts the planned moves under way. It is guarded by Failover's mu.
type leavers struct {
	rooms, people, restarts int
	staying                 map[moveKey]staying
}

// takes reports whether next may begin. Each signaling node uses its share of the bounds, so that they need not ask
// each other.
func (l *leavers) takes(next leaving, signalingNodes, restarts int) bool {
	if !next.live {
		return l.restarts < restarts
	}
	people := max(peopleLeavingAtOnce/signalingNodes, leastPeopleLeaving)
	return l.rooms == 0 || l.rooms < max(roomsLeavingAtOnce/signalingNodes, 1) && l.people+next.people() <= people
}

func (l *leavers) count(next leaving, one int) {
	if !next.live {
		l.restarts += one
		return
	}
	l.rooms += one
	l.people += one * next.people()
}

// moveDraining begins planned moves off the draining nodes, the largest room first, because it is the hardest to
// place. All signaling nodes use the same order, except that each puts the rooms that it could not move behind the
// others.
func (f *Failover) moveDraining(ctx context.Context, owned *sync.WaitGroup, view *cluster.View) {
	var all []leaving
	listed := map[moveKey]bool{}
	for _, node := range view.Nodes {
		if !node.Draining {
			continue
		}
		for _, room := range f.rooms.PinnedTo(node.Boot) {
			next := leaving{room: room, node: node, live: !node.Overdue, why: pin.WhyDrain}
			all = append(all, next)
			listed[next.key()] = true
		}
	}
	// Rooms that are no longer listed have left, or the drain was taken back.
	f.forgetStaying(listed)
	nodes := len(f.signalingNodes())
	f.mu.Lock()
	defer f.mu.Unlock()
	tries := func(l leaving) int { return f.leavers.staying[l.key()].tries }
	slices.SortFunc(all, func(a, b leaving) int {
		return cmp.Or(cmp.Compare(tries(a), tries(b)), cmp.Compare(b.people(), a.people()), cmp.Compare(a.room.Room, b.room.Room))
	})
	for _, next := range all {
		key := next.key()
		if time.Now().Before(f.leavers.staying[key].again) {
			continue
		}
		f.beginLeaving(ctx, owned, next, nodes, f.reconcileNow)
	}
}

// beginLeaving starts one planned move. It returns false when the bounds allow no more or the room already moves. The
// caller holds mu.
func (f *Failover) beginLeaving(ctx context.Context, owned *sync.WaitGroup, next leaving, signalingNodes int, ended func()) bool {
	key := next.key()
	if _, running := f.active[key]; running || len(f.active) >= maxActive || !f.leavers.takes(next, signalingNodes, f.config.Concurrent) {
		return false
	}
	f.active[key] = struct{}{}
	f.leavers.count(next, 1)
	owned.Go(func() {
		f.catch("a planned move broke: it begins anew", func() { f.leave(ctx, next) }, "room", key.room)
		f.mu.Lock()
		delete(f.active, key)
		f.leavers.count(next, -1)
		f.mu.Unlock()
		ended()
	})
	return true
}

// reconcileNow makes Run reconcile without waiting for its tick, so that the next room may leave.
func (f *Failover) reconcileNow() {
	select {
	case f.next <- struct{}{}:
	default:
	}
}

// forgetStaying withdraws the notice "this room stays" from rooms that are no longer on a draining node.
func (f *Failover) forgetStaying(listed map[moveKey]bool) {
	f.mu.Lock()
	var over []moveKey
	for key := range f.leavers.staying {
		if !listed[key] {
			delete(f.leavers.staying, key)
			over = append(over, key)
		}
	}
	f.mu.Unlock()
	for _, key := range over {
		f.rooms.Stays(key.room, "")
	}
}

// leave moves one room and returns when its people have arrived. If this process dies at any point, the re-homing of
// the old node or the old owner's refresh finishes the move.
func (f *Failover) leave(ctx context.Context, l leaving) {
	started, room, from := time.Now(), l.room.Room, l.room.Pin
	to, err := f.plan(ctx, l)
	if err != nil {
		switch {
		case ctx.Err() != nil:
		case l.node.Draining:
			f.stays(l, err)
		default:
			f.log.Info("room stays on its node", "room", room, "why", l.why, "node", l.node.ID, "error", err)
		}
		return
	}
	f.log.Info("room leaves its node", "room", room, "why", l.why, "from", from.Node, "to", to.Node, "epoch", to.Fence.Epoch, "people", l.people(), "live", l.live)
	f.moves.add(room, from, to)
	if to.Boot != from.Boot {
		limited, cancel := context.WithTimeout(ctx, fenceTimeout)
		_, err = f.nodes.Outrank(limited, from.Control, room, to, l.live)
		cancel()
		if err == nil {
			f.moves.tell(l.key(), to.Fence)
		} else {
			// The old node restarts the room's clients when it learns of the higher pin. tellReturned goes on telling
			// it.
			f.log.Warn("node not told that a room has moved: its clients restart", "room", room, "node", from.Node, "error", err)
		}
		failpoint.Hit("move.after-outrank")
	}
	tell := f.rooms.Moved
	if l.live && to.Boot != from.Boot {
		tell = f.rooms.MovedLive
	}
	tell(ctx, room, to)
	failpoint.Hit("move.after-tell")
	for l.live && !f.rooms.Settled(room, to.Fence) && !f.gone(to.Boot) && time.Since(started) < arrivalLimit {
		if !backoff.Sleep(ctx, arrivalPoll) {
			return
		}
	}
}

func (f *Failover) plan(ctx context.Context, l leaving) (to pin.Pin, err error) {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	if l.live {
		to, err = f.rehomer.Move(ctx, l.room.Room, l.room.Pin, l.to, l.room.Expect, l.why)
	} else {
		to, err = f.rehomer.Rehome(ctx, l.room.Room, l.room.Pin, l.room.Expect)
	}
	if err == nil && !l.room.Pin.Fence.Less(to.Fence) {
		return pin.Pin{}, fmt.Errorf("%w than %s", errLower, l.room.Pin.Fence)
	}
	return to, err
}

// stays tells the room's people that their room cannot leave yet. The move is tried again, because other nodes may
// get headroom.
func (f *Failover) stays(l leaving, err error) {
	why := strings.TrimPrefix(err.Error(), "place room "+string(l.room.Room)+": ")
	f.mu.Lock()
	last, said := f.leavers.staying[l.key()]
	f.leavers.staying[l.key()] = staying{again: time.Now().Add(f.spread(leaveAgain)), tries: last.tries + 1}
	f.mu.Unlock()
	f.rooms.Stays(l.room.Room, why)
	if said {
		return
	}
	if _, ok := f.delayLogs.Next(); ok {
		f.log.Warn("room stays on the draining node", "room", l.room.Room, "node", l.node.ID, "people", l.people(), "error", err)
	}
}
