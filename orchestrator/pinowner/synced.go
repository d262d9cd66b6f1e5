package pinowner

import (
	"maps"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/pin"
)

// synced tracks the store's incarnations that have all pins and rosters of this node. It is guarded by Owner's mu.
type synced struct {
	// heard has the time of each incarnation's last answer.
	heard map[pin.Incarnation]time.Time
	// all is when all masters last answered without a fault.
	all time.Time
	// steady is since when all masters have answered without a pause of silentFor.
	steady time.Time
	// clean is set if the last refresh had no fault.
	clean bool
	asked time.Time
	// partial is set if some masters did not answer at the time asked.
	partial bool
}

// Synced returns the incarnations that have all pins and rosters of this node. Each one counts until confirmedFor
// after its last answer.
func (own *Owner) Synced() pin.Incarnations {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.synced.at(time.Now())
}

func (s *synced) at(now time.Time) pin.Incarnations {
	var all []pin.Incarnation
	for in, heard := range s.heard {
		if pincache.Elapsed(heard, now) <= confirmedFor {
			all = append(all, in)
		}
	}
	return pin.IncarnationsOf(all)
}

// lacks reports whether the pins and rosters must be written again: an incarnation answers that may not have all of
// them, or all masters answered and a known incarnation is gone.
func (s *synced) lacks(answered pin.Incarnations, all bool) bool {
	for _, in := range answered.All() {
		if _, ok := s.heard[in]; !ok {
			return true
		}
	}
	return all && len(s.heard) != len(answered.All())
}

// refreshed notes the end of a refresh. After a clean one, all pins of the node are in the incarnations that answered
// before it.
func (s *synced) refreshed(answered pin.Incarnations, at time.Time, all, clean bool) {
	s.asked, s.partial, s.clean = at, !all, clean
	if !clean {
		return
	}
	if all {
		s.allAnswered(at)
		clear(s.heard)
	}
	for _, in := range answered.All() {
		s.heard[in] = at
	}
}

// answer notes which incarnations answered a question. It returns true if all masters answered and the incarnations
// are those of the last time.
func (s *synced) answer(answered pin.Incarnations, at time.Time, all bool) bool {
	s.asked, s.partial = at, !all
	last := s.at(at)
	for _, in := range answered.All() {
		if s.clean && last.Has(in) {
			s.heard[in] = at
		}
	}
	same := all && s.clean && answered == last
	if same {
		s.allAnswered(at)
	}
	return same
}

func (s *synced) allAnswered(at time.Time) {
	if pincache.Elapsed(s.all, at) > silentFor {
		s.steady = at
	}
	s.all = at
}

// StoreSteadyFor returns for how long the whole store has answered this node without a pause of more than three
// seconds. It is zero while the store is silent.
func (own *Owner) StoreSteadyFor() time.Duration {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.synced.steadyFor(time.Now())
}

func (s *synced) steadyFor(now time.Time) time.Duration {
	if s.all.IsZero() || pincache.Elapsed(s.all, now) > silentFor {
		return 0
	}
	return pincache.Elapsed(s.steady, now)
}

// distrust withdraws the incarnations that may lack a pin. These are the ones that did not answer last time, or all
// of them if the pin may lie in any.
func (s *synced) distrust(unreachable bool) {
	maps.DeleteFunc(s.heard, func(_ pin.Incarnation, heard time.Time) bool {
		return !unreachable || !s.partial || heard.Before(s.asked)
	})
}
