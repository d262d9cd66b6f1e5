package signaling

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

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

// countSockets gossips each change of how many are connected and wait here, and marks an overloaded node.
func (s *Server) countSockets(ctx context.Context) {
	var even evenness
	var report cluster.Load
	asker := readiness.New(askReadyLimit)
	count := func() {
		own, waiting := uint32(max(s.sockets.Load(), 0)), uint32(s.doors.Waiting())
		if s.parts.Reports != nil && (own != report.Sockets || waiting != report.Waiting || report.Seq == 0) {
			report = cluster.Load{Seq: report.Seq + 1, Sockets: own, Waiting: waiting}
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

const (
	// Balancers that ask every half second see it before clients reconnect.
	leaveNotice = time.Second
	leaveEvery  = 250 * time.Millisecond
	// All leave within ten seconds, fifty at a time if few.
	leaveSteps = 40
	// For replies and messages after the last client's end.
	lastAnswers = 500 * time.Millisecond
)

var errLeaving = fmt.Errorf("%w: another one takes over", errStopping)

type hosted struct {
	mu       sync.Mutex
	sessions map[*session]struct{}
}

func (h *hosted) add(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions == nil {
		h.sessions = map[*session]struct{}{}
	}
	h.sessions[s] = struct{}{}
}

func (h *hosted) remove(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s)
}

func (h *hosted) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// end ends up to most of those allowed, including those already ending.
func (h *hosted) end(most int, why error, may func(*session) bool) (ended int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.sessions {
		if ended == most {
			return ended
		}
		if may(s) {
			s.socket.end(why)
			ended++
		}
	}
	return ended
}

// Leave sends clients to other signaling nodes, a few at a time, until none is left or ctx ends. This node is not ready from now on.
// Media goes on; places in lines are kept for ten seconds, presence longer. Clients stay while no other node is ready.
func (s *Server) Leave(ctx context.Context) {
	s.leaving.Store(true)
	asker, began := readiness.New(askReadyLimit), time.Now()
	s.log.Info("this signaling node leaves: its clients go to the others", "clients", s.hosted.count())
	if s.hosted.count() == 0 || !backoff.Sleep(ctx, leaveNotice) {
		return
	}
	atOnce := max(sentAwayAtOnce, (s.hosted.count()+leaveSteps-1)/leaveSteps)
	stuck := false
	for s.hosted.count() > 0 {
		if s.others.ready(ctx, asker, s.parts.Views.View()) {
			stuck = false
			s.elsewhere.Store(true)
			s.log.Info("clients sent to another signaling node", "clients", s.hosted.end(atOnce, errLeaving, func(*session) bool { return true }))
		} else if !stuck && ctx.Err() == nil {
			stuck = true
			s.elsewhere.Store(false)
			s.log.Warn("no other signaling node is ready: the clients stay until one is", "clients", s.hosted.count())
		}
		if !backoff.Sleep(ctx, leaveEvery) {
			return
		}
	}
	s.log.Info("all clients have left", "took_ms", time.Since(began).Milliseconds())
	backoff.Sleep(ctx, lastAnswers)
}

// checkLeaving refuses newcomers while others can take them.
func (s *Server) checkLeaving() error {
	if s.elsewhere.Load() {
		return errLeaving
	}
	return nil
}

// A balancer's choice is not undone at once.
const shedAfter = 30 * time.Second

var errShed = fmt.Errorf("%w: others have far fewer clients", errStopping)

// excess is the sockets above an overloaded node's share.
func (e *evenness) excess(own, all, nodes int) int {
	if !e.overloaded {
		return 0
	}
	return max(0, own-int((float64(all)/float64(nodes)+fewSockets)*littleMore)+1)
}

// shed sends a few clients elsewhere, as Leave does.
func (s *Server) shed(ctx context.Context, asker *readiness.Asker, excess int, now time.Time) (sent int) {
	most := min(s.config.ShedPerSecond, excess)
	if most <= 0 || s.leaving.Load() || !s.others.ready(ctx, asker, s.parts.Views.View()) {
		return 0
	}
	sent = s.hosted.end(most, errShed, func(one *session) bool {
		return !one.line.waiting.Load() && now.Sub(one.began) >= shedAfter
	})
	if sent > 0 {
		s.log.Info("clients sent to signaling nodes with fewer", "clients", sent, "excess", excess)
	}
	return sent
}

// RenewICEServers gives everybody in a room new credentials, before those of a former cluster key are worth nothing.
func (s *Server) RenewICEServers() {
	s.hosted.mu.Lock()
	defer s.hosted.mu.Unlock()
	for one := range s.hosted.sessions {
		select {
		case one.renew <- struct{}{}:
		default: // it is about to
		}
	}
}
