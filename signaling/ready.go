package signaling

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
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
	if !r.hub.Empty() && r.anotherIsReady(ctx, r.asker, view) && cutOff(r.parts.Views.View()) { // asking took time
		r.log.Info("clients sent to another signaling node", "clients", r.hub.SendAway(sentAwayAtOnce, "", errCutOff))
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
		sent := s.hub.SendAway(sentAwayAtOnce, node.Boot, errCutOff)
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

var errWarming = errors.New("the cluster has not been seen yet: no member of --join has answered")

const readyLimit = time.Second

// serveReady answers balancers: not before gossip settled and the store was reached once, nor while cut off from the media
// nodes, alone without the store, or overloaded. Running calls need no store.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	s.writeSockets(w)
	if s.storeReached.Load() {
		w.Header().Set(readiness.StoreHeader, readiness.StoreReached)
	}
	if err := cmp.Or(s.checkReady(r.Context()), s.checkEven()); err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeText(w, http.StatusOK, "ready")
}

func (s *Server) checkReady(ctx context.Context) error {
	if view := s.parts.Views.View(); view == nil || !view.Settled {
		return errWarming
	}
	if s.leaving.Load() {
		return errLeaving
	}
	if s.cut.Load() {
		return errCutOff
	}
	if s.full() {
		return errFull
	}
	if s.storeless.Load() {
		return errStoreless
	}
	if s.ready.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.parts.Store.Ping(ctx); err != nil {
		s.log.Debug("store not reached", "error", err)
		return errors.New("the store has not been reached yet (is --store right, is Redis running?): nobody can join until it is")
	}
	s.ready.Store(true)
	return nil
}

func (s *Server) writeSockets(w http.ResponseWriter) {
	w.Header().Set(readiness.SocketsHeader, strconv.FormatInt(max(s.sockets.Load(), 0), 10))
}

// A signaling node that alone has lost the store is not ready: others admit people, and it can open no room. Where all have
// lost it, all stay ready, for balancers would take the whole cluster away: resumes and joins of open rooms need no store.
const (
	pingStoreEvery = time.Second
	pingStoreLimit = time.Second
)

var errStoreless = errors.New("this signaling node has not reached the store for a while, and another one does: is its way to --store cut?")

func (s *Server) watchStore(ctx context.Context) {
	asker, reached := readiness.New(askReadyLimit), time.Now()
	backoff.Every(ctx, pingStoreEvery, func() {
		s.panics.Survives(s.log, "a look whether the store answers broke", func() { reached = s.lookForStore(ctx, asker, reached) })
	})
}

// lookForStore returns when the store answered last.
func (s *Server) lookForStore(ctx context.Context, asker *readiness.Asker, last time.Time) time.Time {
	limited, cancel := context.WithTimeout(ctx, pingStoreLimit)
	err := s.parts.Store.Ping(limited)
	cancel()
	s.storeReached.Store(err == nil)
	if err == nil {
		if s.storeless.Swap(false) {
			s.log.Info("the store is reached again")
		}
		return time.Now()
	}
	alone := time.Since(last) >= s.config.StorelessAfter && s.anotherHasStore(ctx, asker)
	if alone != s.storeless.Swap(alone) {
		s.log.Warn("whether this node alone does not reach the store, and so is not ready", "alone", alone, "error", err)
	}
	return last
}

func (s *Server) anotherHasStore(ctx context.Context, asker *readiness.Asker) bool {
	view := s.parts.Views.View()
	if view == nil {
		return false
	}
	for id, node := range view.Signaling {
		if id == s.config.Node || node.HTTP == "" {
			continue
		}
		if reaches, err := asker.ReachesStore(ctx, node.HTTP); reaches {
			return true
		} else if err != nil {
			s.log.Debug("another signaling node is not ready", "node", id, "error", err)
		}
	}
	return false
}
