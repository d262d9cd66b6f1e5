package signaling

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/hub"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
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

var errUnheard = fault.Coded(wire.CodeNotReady, "the room's media node is not heard here, but by another signaling node: try again, and reach that one")

var errCutOff = fault.Coded(wire.CodeNotReady, "no media node is heard here, though the cluster says that they live: is this node cut off from their control port?")

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

// reach says which media nodes are heard here, and sends the clients of the others away. Its loop owns since and unreached; anybody may ask
// cut and refuses.
type reach struct {
	others *others
	views  Views
	hub    *hub.Hub
	after  time.Duration // without hearing a media node
	panics *panics.Guard
	log    *slog.Logger
	asker  *readiness.Asker

	since     time.Time // zero while one is heard
	unreached map[pin.BootID]time.Time
	branches  map[pin.BootID]bool // in the view before, with media of clients here

	cut     atomic.Bool                         // none is heard here, though some live
	unheard atomic.Pointer[map[pin.BootID]bool] // heard by other signaling nodes only
}

func (r *reach) watch(ctx context.Context) {
	backoff.Every(ctx, reachEvery, func() {
		r.panics.Catch(r.log, "a look at which media nodes are heard broke", func() { r.look(ctx) })
	})
}

func (r *reach) look(ctx context.Context) {
	view := r.views.View()
	if view != nil {
		r.branches = r.buryBranches(view, r.branches)
	}
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
	if time.Since(r.since) < r.after {
		return
	}
	if !r.cut.Swap(true) {
		r.log.Warn("no media node is heard here, though gossip takes them for alive: this node is not ready")
	}
	if !r.hub.Empty() && r.others.ready(ctx, r.asker, view) && cutOff(r.views.View()) { // asking took time
		r.log.Info("clients sent to another signaling node", "clients", r.hub.SendAway(sentAwayAtOnce, "", errCutOff))
	}
}

// buryBranches tells the clients of a branch that has left the view, and returns the branches in it. A branch's death usually breaks its links;
// this is for a branch that is frozen or cut off.
func (r *reach) buryBranches(view *cluster.View, before map[pin.BootID]bool) map[pin.BootID]bool {
	boots := r.hub.Branches()
	if len(boots) == 0 {
		return nil
	}
	present, now := map[pin.BootID]bool{}, map[pin.BootID]bool{}
	for _, node := range view.Nodes {
		present[node.Boot] = true
	}
	for _, boot := range boots {
		switch {
		case present[boot]:
			now[boot] = true
		case before[boot]:
			r.hub.BranchDied(boot)
		}
	}
	return now
}

// handOver sends away clients of media nodes that only others hear. It returns those boots, and since when.
func (r *reach) handOver(
	ctx context.Context, asker *readiness.Asker, view *cluster.View, before map[pin.BootID]time.Time, now time.Time,
) map[pin.BootID]time.Time {
	unreached, unheard := map[pin.BootID]time.Time{}, map[pin.BootID]bool{}
	defer func() { r.unheard.Store(&unheard) }()
	for id, node := range view.Nodes {
		if !onlyUnheardHere(node) {
			continue
		}
		since, known := before[node.Boot]
		if !known {
			since = now
		}
		unreached[node.Boot] = since
		if unheard[node.Boot] = now.Sub(since) >= unreachedFor; !unheard[node.Boot] || !r.hub.Feeds(node.Boot) || !r.others.ready(ctx, asker, view) {
			continue
		}
		sent := r.hub.SendAway(sentAwayAtOnce, node.Boot, errCutOff)
		r.log.Warn("clients of a media node that is not heard here sent to another signaling node, for one hears it", "node", id, "clients", sent)
	}
	return unreached
}

// refuses keeps away clients that were sent elsewhere.
func (r *reach) refuses(boot pin.BootID) bool {
	unheard := r.unheard.Load()
	return unheard != nil && (*unheard)[boot]
}

func onlyUnheardHere(n cluster.Node) bool { return n.Unreachable && !n.Suspect && n.Load.Watchers > 0 }

// others are the other signaling nodes.
type others struct {
	self ring.NodeID
	log  *slog.Logger
}

// any asks one after the other until one answers yes.
func (o *others) any(view *cluster.View, ask func(address string) (yes bool, err error)) bool {
	if view == nil {
		return false
	}
	for id, node := range view.Signaling {
		if id == o.self || node.HTTP == "" {
			continue
		}
		yes, err := ask(node.HTTP)
		if yes {
			return true
		}
		if err != nil {
			o.log.Debug("another signaling node is not ready", "node", id, "error", err)
		}
	}
	return false
}

// ready reports whether one of them takes clients.
func (o *others) ready(ctx context.Context, asker *readiness.Asker, view *cluster.View) bool {
	return o.any(view, func(address string) (bool, error) {
		err := asker.Ask(ctx, address, readiness.Path)
		return err == nil, err
	})
}

// reachStore reports whether one of them reaches the store.
func (o *others) reachStore(ctx context.Context, asker *readiness.Asker, view *cluster.View) bool {
	return o.any(view, func(address string) (bool, error) { return asker.ReachesStore(ctx, address) })
}

var errWarming = errors.New("the cluster has not been seen yet: no member of --join has answered")

const readyLimit = time.Second

// serveReady answers balancers: not before gossip settled and the store was reached once, nor while cut off from the media
// nodes, alone without the store, or overloaded. Running calls need no store.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(readiness.SocketsHeader, strconv.FormatInt(max(s.sockets.Load(), 0), 10))
	if s.storeWatch.reached.Load() {
		w.Header().Set(readiness.StoreHeader, readiness.StoreReached)
	}
	if err := cmp.Or(s.checkReady(r.Context()), s.checkEven()); err != nil {
		reply.Text(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	reply.Text(w, http.StatusOK, "ready")
}

func (s *Server) checkReady(ctx context.Context) error {
	if view := s.parts.Views.View(); view == nil || !view.Settled {
		return errWarming
	}
	if s.leaving.Load() {
		return errLeaving
	}
	if s.reach.cut.Load() {
		return errCutOff
	}
	if s.full() {
		return errFull
	}
	if s.storeWatch.alone.Load() {
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

// A signaling node that alone has lost the store is not ready: others admit people, and it can open no room. Where all have
// lost it, all stay ready, for balancers would take the whole cluster away: resumes and joins of open rooms need no store.
const (
	pingStoreEvery = time.Second
	pingStoreLimit = time.Second
	// toldSilence is the shortest silence of the store that the cluster's events tell of.
	toldSilence = 5 * time.Second
)

var errStoreless = errors.New("this signaling node has not reached the store for a while, and another one does: is its way to --store cut?")

// storeWatch says whether the store answers. Anybody may ask reached and alone.
type storeWatch struct {
	others *others
	views  Views
	store  Store
	after  time.Duration // without an answer
	node   ring.NodeID
	events *events.Recorder
	panics *panics.Guard
	log    *slog.Logger

	reached atomic.Bool // by the last ping
	alone   atomic.Bool // not reached for a while, and another signaling node reaches it
}

func (w *storeWatch) watch(ctx context.Context) {
	asker, reached := readiness.New(askReadyLimit), time.Now()
	backoff.Every(ctx, pingStoreEvery, func() {
		w.panics.Catch(w.log, "a look whether the store answers broke", func() { reached = w.look(ctx, asker, reached) })
	})
}

// look returns when the store answered last.
func (w *storeWatch) look(ctx context.Context, asker *readiness.Asker, last time.Time) time.Time {
	limited, cancel := context.WithTimeout(ctx, pingStoreLimit)
	err := w.store.Ping(limited)
	cancel()
	w.reached.Store(err == nil)
	if err == nil {
		if silent := time.Since(last); silent >= toldSilence {
			w.events.Record(events.Event{
				Kind: events.StoreBack, Node: w.node, Role: string(cluster.RoleSignaling), Cause: "silent for " + silent.Round(time.Second).String(),
			})
		}
		if w.alone.Swap(false) {
			w.log.Info("the store is reached again")
		}
		return time.Now()
	}
	alone := time.Since(last) >= w.after && w.others.reachStore(ctx, asker, w.views.View())
	if alone != w.alone.Swap(alone) {
		w.log.Warn("whether this node alone does not reach the store, and so is not ready", "alone", alone, "error", err)
	}
	return last
}
