package signaling

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/readiness"
)

// A signaling node that hears no media node, while the rest of the cluster does, is of no use to anybody: nobody can join
// through it, and who is here cannot follow when a room moves. It says so to its balancer, refuses newcomers at
// once, and sends its clients to another signaling node, where they resume without a pause of their media. Where no other
// one is ready, they stay: what flows goes on.
const (
	// reachEvery is how often a node looks whether it is cut off.
	reachEvery = 250 * time.Millisecond
	// sentAwayAtOnce clients go in one such look, so 200 a second: the pace at which failover sends them to a node.
	sentAwayAtOnce = 50
	// unreachedFor is for how long one media node must not have been heard here, and be watched by another signaling node, before
	// its people are sent there: longer than the media node may count a broken stream of ours (the keepalive of package control, 7 s).
	unreachedFor = 9 * time.Second
	// askReadyLimit bounds the question to another signaling node whether it is ready.
	askReadyLimit = time.Second
)

// errUnheard refuses clients of a media node that only other signaling nodes hear.
var errUnheard = errors.New("the room's media node is not heard here, but by another signaling node: try again, and reach that one")

// errCutOff ends sessions, and refuses new ones, where no media node is heard.
var errCutOff = errors.New("no media node is heard here, though the cluster says that they live: is this node cut off from their control port?")

// cutOff says whether none of the media nodes is heard here, and gossip, which asks through others too, has not given all of
// them up. Where it has, they are more likely dead, and no signaling node is better off than this one.
func cutOff(view *cluster.View) bool {
	vouchedFor := false
	for _, node := range view.Nodes {
		if !node.Unreachable {
			return false
		}
		vouchedFor = vouchedFor || !node.Suspect
	}
	return vouchedFor
}

// watchReach follows whether this node is cut off, until ctx ends.
func (s *Server) watchReach(ctx context.Context) {
	asker := readiness.New(askReadyLimit)
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	var since time.Time // zero while a media node is heard
	var unreached map[pin.BootID]time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		view := s.parts.Views.View()
		if view == nil || !cutOff(view) {
			if view != nil {
				unreached = s.handOver(ctx, asker, view, unreached, time.Now())
			}
			since = time.Time{}
			if s.cut.Swap(false) {
				s.log.Info("media nodes are heard again")
			}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < s.config.CutOffAfter {
			continue
		}
		if !s.cut.Swap(true) {
			s.log.Warn("no media node is heard here, though gossip takes them for alive: this node is not ready")
		}
		if !s.hub.empty() && s.anotherIsReady(ctx, asker, view) && cutOff(s.parts.Views.View()) { // still, for asking takes time
			s.log.Info("clients sent to another signaling node", "clients", s.hub.sendAway(sentAwayAtOnce, ""))
		}
	}
}

// handOver sends the people of a media node that is not heard here, but by another signaling node, to another signaling node. It takes and
// returns since when which boots are in that case.
func (s *Server) handOver(
	ctx context.Context, asker *readiness.Asker, view *cluster.View, before map[pin.BootID]time.Time, now time.Time,
) map[pin.BootID]time.Time {
	unreached, unheard := map[pin.BootID]time.Time{}, map[pin.BootID]bool{}
	defer func() { s.unheard.Store(&unheard) }()
	for id, node := range view.Nodes {
		if !onlyUnheardHere(node) {
			continue
		}
		since, known := before[node.Boot]
		if !known {
			since = now
		}
		unreached[node.Boot] = since
		if unheard[node.Boot] = now.Sub(since) >= unreachedFor; !unheard[node.Boot] || len(s.hub.PinnedTo(node.Boot)) == 0 || !s.anotherIsReady(ctx, asker, view) {
			continue
		}
		sent := s.hub.sendAway(sentAwayAtOnce, node.Boot)
		s.log.Warn("clients of a media node that is not heard here sent to another signaling node, for one hears it", "node", id, "clients", sent)
	}
	return unreached
}

// refuses says whether a client whose room is on boot must go to another signaling node, which hears that media node. A client
// that was sent away may come back here: an attempt to attach would hold it up for seconds.
func (s *Server) refuses(boot pin.BootID) bool {
	unheard := s.unheard.Load()
	return unheard != nil && (*unheard)[boot]
}

// onlyUnheardHere says whether a media node is not heard here, though gossip holds it alive and a signaling node watches it.
func onlyUnheardHere(n cluster.Node) bool { return n.Unreachable && !n.Suspect && n.Load.Watchers > 0 }

// anotherIsReady asks the other signaling nodes, as their balancers do, and returns with the first that is.
func (s *Server) anotherIsReady(ctx context.Context, asker *readiness.Asker, view *cluster.View) bool {
	for id, node := range view.Signaling {
		if id == s.config.Node || node.HTTP == "" {
			continue
		}
		if err := asker.Ask(ctx, node.HTTP, readiness.Path); err != nil {
			s.log.Debug("another signaling node is not ready", "node", id, "error", err)
			continue
		}
		return true
	}
	return false
}

// empty says whether nobody is here.
func (h *Hub) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms) == 0
}

// sendAway ends so many sessions, of the rooms of one boot if one is named; each resumes elsewhere.
func (h *Hub) sendAway(most int, boot pin.BootID) (sent int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rooms := h.rooms
	if boot != "" {
		rooms = h.byBoot[boot]
	}
	for _, r := range rooms {
		for one := range r.sessions {
			if sent == most {
				return sent
			}
			one.socket.end(errCutOff)
			sent++
		}
	}
	return sent
}
