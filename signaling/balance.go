package signaling

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

// Reports gossips this node's own figures.
type Reports interface {
	SetLoad(load cluster.Load)
}

const (
	countEvery = time.Second
	// A node is overloaded above (mean + few) * much sockets until below (mean + few) * less: neither by chance nor alternating.
	fewSockets = 50
	muchMore   = 1.25
	littleMore = 1.1
	// Others' counts are a second or two old: in a rush each node could seem overloaded.
	overloadedAfter = 3
)

// evenness decides whether a node takes new sockets. The node with the fewest always does.
type evenness struct {
	over       int // counts in a row
	overloaded bool
}

// nodes includes this one.
func (e *evenness) count(own, all, nodes int) (overloaded bool) {
	mean := float64(all)/float64(nodes) + fewSockets
	switch {
	case float64(own) > mean*muchMore:
		e.over++
		e.overloaded = e.overloaded || e.over >= overloadedAfter
	case float64(own) < mean*littleMore:
		e.over, e.overloaded = 0, false
	default:
		e.over = 0
	}
	return e.overloaded
}

// countSockets gossips each change, and marks an overloaded node.
func (s *Server) countSockets(ctx context.Context) {
	var even evenness
	var report cluster.Load
	asker := readiness.New(askReadyLimit)
	count := func() {
		own := uint32(max(s.sockets.Load(), 0))
		if s.parts.Reports != nil && (own != report.Sockets || report.Seq == 0) {
			report = cluster.Load{Seq: report.Seq + 1, Sockets: own}
			s.parts.Reports.SetLoad(report)
		}
		if view := s.parts.Views.View(); view != nil {
			all, nodes := int(own), 1
			for id, node := range view.Signaling {
				if id != s.config.Node {
					all, nodes = all+int(node.Load.Sockets), nodes+1
				}
			}
			if is := even.count(int(own), all, nodes); is != s.overloaded.Swap(is) {
				s.log.Info("this signaling node takes new sockets or leaves them to the others", "takes", !is, "here", own, "everywhere", all, "nodes", nodes)
			}
			s.shed(ctx, asker, even.excess(int(own), all, nodes), time.Now())
		}
	}
	count()
	backoff.Every(ctx, countEvery, count)
}

// checkEven is for balancers that do not count.
func (s *Server) checkEven() error {
	if !s.overloaded.Load() {
		return nil
	}
	return fmt.Errorf("this signaling node has %d sockets, far more than the others: new ones go there until they have caught up", s.sockets.Load())
}

func (s *Server) writeSockets(w http.ResponseWriter) {
	w.Header().Set(readiness.SocketsHeader, strconv.FormatInt(max(s.sockets.Load(), 0), 10))
}
