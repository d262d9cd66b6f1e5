package signaling

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

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
		if s.anotherIsReady(ctx, asker, s.parts.Views.View()) {
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
