package signaling

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

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
	if most <= 0 || s.leaving.Load() || !s.anotherIsReady(ctx, asker, s.parts.Views.View()) {
		return 0
	}
	sent = s.hosted.end(most, errShed, func(one *session) bool {
		return !one.waiting.Load() && now.Sub(one.began) >= shedAfter
	})
	if sent > 0 {
		s.log.Info("clients sent to signaling nodes with fewer", "clients", sent, "excess", excess)
	}
	return sent
}
