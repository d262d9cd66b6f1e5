package signaling

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/pin"
)

// A signaling node that alone hears no media node is not ready and sends its clients to another one, where they resume
// without a pause. They stay if no other is ready.
const (
	reachEvery     = 250 * time.Millisecond
	sentAwayAtOnce = 50
	// Above the 7 s for which a media node may count our broken stream.
	unreachedFor  = 9 * time.Second
	askReadyLimit = time.Second
)

var errUnheard = errors.New("the room's media node is not heard here, but by another signaling node: try again, and reach that one")

var errCutOff = errors.New("no media node is heard here, though the cluster says that they live: is this node cut off from their control port?")

// cutOff: no media node is heard, although gossip has live ones.
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

type reach struct {
	*Server

	asker     *readiness.Asker
	since     time.Time // zero while one is heard
	unreached map[pin.BootID]time.Time
}

func (s *Server) watchReach(ctx context.Context) {
	r := &reach{Server: s, asker: readiness.New(askReadyLimit)}
	backoff.Every(ctx, reachEvery, func() {
		s.panics.Survives(s.log, "a look at which media nodes are heard broke", func() { r.look(ctx) })
	})
}

func (r *reach) look(ctx context.Context) {
	view := r.parts.Views.View()
	if view == nil || !cutOff(view) {
		if view != nil {
			r.unreached = r.handOver(ctx, r.asker, view, r.unreached, time.Now())
		}
		r.since = time.Time{}
		if r.cut.Swap(false) {
			r.log.Info("media nodes are heard again")
		}
		return
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	if time.Since(r.since) < r.config.CutOffAfter {
		return
	}
	if !r.cut.Swap(true) {
		r.log.Warn("no media node is heard here, though gossip takes them for alive: this node is not ready")
	}
	if !r.hub.empty() && r.anotherIsReady(ctx, r.asker, view) && cutOff(r.parts.Views.View()) { // asking took time
		r.log.Info("clients sent to another signaling node", "clients", r.hub.sendAway(sentAwayAtOnce, ""))
	}
}

// handOver sends away clients of media nodes that only others hear. It returns those boots, and since when.
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

// refuses keeps away clients that were sent elsewhere.
func (s *Server) refuses(boot pin.BootID) bool {
	unheard := s.unheard.Load()
	return unheard != nil && (*unheard)[boot]
}

func onlyUnheardHere(n cluster.Node) bool { return n.Unreachable && !n.Suspect && n.Load.Watchers > 0 }

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

func (h *Hub) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms) == 0
}

// sendAway ends up to most sessions, only of boot's rooms if it is not empty.
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
