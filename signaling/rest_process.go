package signaling

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

type processAnswer struct {
	Node       ring.NodeID `json:"node"`
	Goroutines int         `json:"goroutines"`
	HeapBytes  uint64      `json:"heapBytes"`
	Sockets    int64       `json:"sockets"`
	Waiting    int         `json:"waiting"`  // without a session
	SentAway   uint64      `json:"sentAway"` // dropped while pending
	Panics     uint64      `json:"panics"`   // caused by input

	Messages *messaging.Counters `json:"messages,omitempty"` // of a signaling node
	Relay    any                 `json:"relay,omitempty"`    // of a relaying signaling node
}

var errCollecting = fault.New(wire.CodeTooManyMessages, "the garbage of that process is collected too often", "Wait a moment, then try again.")

func (s *Server) serveProcess(w http.ResponseWriter, r *http.Request) {
	collect := r.URL.Query().Has("collect")
	node := cmp.Or(ring.NodeID(r.URL.Query().Get("node")), s.config.Node)
	named, known := s.parts.Views.View().Nodes[node]
	switch {
	case node != s.config.Node && !known:
		reply.Text(w, http.StatusNotFound, "There is no media node of that name.")
		return
	case collect && !s.limits.Collect(node):
		reply.Refuse(w, errCollecting)
		return
	case node != s.config.Node:
		s.serveProcessOf(w, r, named, collect)
		return
	}
	if collect {
		runtime.GC() // pools keep values for one more
		debug.FreeOSMemory()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	waiting, sentAway := s.pending.Count()
	messages := s.parts.Messages.Counters()
	var relay any
	if s.parts.RelayCounters != nil {
		relay = s.parts.RelayCounters()
	}
	reply.JSON(w, http.StatusOK, processAnswer{
		Relay: relay, Messages: &messages, Node: s.config.Node, Goroutines: runtime.NumGoroutine(), HeapBytes: memory.HeapAlloc,
		Sockets: s.sockets.Load(), Waiting: waiting, SentAway: sentAway, Panics: s.panics.Count(),
	})
}

func (s *Server) serveProcessOf(w http.ResponseWriter, r *http.Request, named cluster.Node, collect bool) {
	ctx, cancel := context.WithTimeout(r.Context(), moderation.AskPatience)
	defer cancel()
	client, err := s.parts.Pool.Client(named.Control)
	if err == nil {
		var told *control.ProcessReply
		if told, err = client.Process(ctx, &control.ProcessRequest{Collect: collect}); err == nil {
			reply.JSON(w, http.StatusOK, processAnswer{
				Node: ring.NodeID(told.GetNode()), Goroutines: int(told.GetGoroutines()), HeapBytes: told.GetHeapBytes(),
				Panics: told.GetPanics(),
			})
			return
		}
	}
	s.log.Debug("node not asked for its process", "node", named.ID, "error", err)
	reply.Text(w, http.StatusBadGateway, "The media node did not answer.")
}
