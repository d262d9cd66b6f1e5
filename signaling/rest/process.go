package rest

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// ProcessAnswer has the figures of one process.
type ProcessAnswer struct {
	Node       ring.NodeID `json:"node"`
	Goroutines int         `json:"goroutines"`
	HeapBytes  uint64      `json:"heapBytes"`
	Sockets    int64       `json:"sockets"`
	// Waiting are connections without a session.
	Waiting int `json:"waiting"`
	// SentAway counts connections that were dropped while they had no session.
	SentAway uint64 `json:"sentAway"`
	// Panics counts caught panics.
	Panics uint64 `json:"panics"`

	// Messages are those of a signaling node.
	Messages *messaging.Counters `json:"messages,omitempty"`
	// Relay is that of a signaling node which relays.
	Relay any `json:"relay,omitempty"`
}

// ErrCollecting refuses a collection of garbage so soon after another one.
var ErrCollecting = fault.New(wire.CodeTooManyMessages, "the garbage of that process is collected too often", "Wait a moment, then try again.")

func (a *API) serveProcess(w http.ResponseWriter, r *http.Request) {
	collect := r.URL.Query().Has("collect")
	node := cmp.Or(ring.NodeID(r.URL.Query().Get("node")), a.deps.Config.Node)
	named, known := a.deps.Views.View().Nodes[node]
	switch {
	case node != a.deps.Config.Node && !known:
		_, err := MediaNode(a.deps.Views.View(), node)
		reply.Refuse(w, err)
		return
	case collect && !a.deps.Limits.Collect(node):
		reply.Refuse(w, ErrCollecting)
		return
	case node != a.deps.Config.Node:
		a.serveProcessOf(w, r, named, collect)
		return
	}
	if collect {
		// A value in a pool survives one collection.
		runtime.GC()
		debug.FreeOSMemory()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	waiting, sentAway := a.deps.Pending()
	messages := a.deps.Messages.Counters()
	var relay any
	if a.deps.RelayCounters != nil {
		relay = a.deps.RelayCounters()
	}
	reply.JSON(w, http.StatusOK, ProcessAnswer{
		Relay: relay, Messages: &messages, Node: a.deps.Config.Node, Goroutines: runtime.NumGoroutine(), HeapBytes: memory.HeapAlloc,
		Sockets: a.deps.Sockets(), Waiting: waiting, SentAway: sentAway, Panics: a.deps.Panics.Count(),
	})
}

func (a *API) serveProcessOf(w http.ResponseWriter, r *http.Request, named cluster.Node, collect bool) {
	ctx, cancel := context.WithTimeout(r.Context(), moderation.AskPatience)
	defer cancel()
	client, err := a.deps.Pool.Client(named.Control)
	if err == nil {
		var told *control.ProcessReply
		if told, err = client.Process(ctx, &control.ProcessRequest{Collect: collect}); err == nil {
			reply.JSON(w, http.StatusOK, ProcessAnswer{
				Node: ring.NodeID(told.GetNode()), Goroutines: int(told.GetGoroutines()), HeapBytes: told.GetHeapBytes(),
				Panics: told.GetPanics(),
			})
			return
		}
	}
	a.deps.Log.Debug("node not asked for its process", "node", named.ID, "error", err)
	reply.Refuse(w, fault.Sayf(wire.CodeNodeUnreachable, "The media node %s did not answer.", named.ID))
}
