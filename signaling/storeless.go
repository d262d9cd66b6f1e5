package signaling

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

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
