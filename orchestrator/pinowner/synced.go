package pinowner

import (
	"maps"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/pin"
)

// synced are the incarnations with all pins and rosters of this node. Owner's mu guards it.
type synced struct {
	heard   map[pin.Incarnation]time.Time // each one's last answer
	all     time.Time                     // the last answer of all, without faults
	steady  time.Time                     // since then all have answered without a pause of silentFor
	clean   bool                          // the last refresh had no faults
	asked   time.Time
	partial bool // some did not answer then
}

// Synced returns the incarnations with all pins and rosters of this node; each until confirmedFor after its last answer.
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

// lacks: one that answers may not have all pins and rosters, or, when all answered, one has gone.
func (s *synced) lacks(answered pin.Incarnations, all bool) bool {
	for _, in := range answered.All() {
		if _, ok := s.heard[in]; !ok {
			return true
		}
	}
	return all && len(s.heard) != len(answered.All())
}

// refreshed: an owner's pins are in those that answered before the refresh, or a fault.
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

// answer is true if all answered and none is new.
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

// StoreSteadyFor returns for how long the whole store has answered this node, without a pause of more than three seconds; zero
// while it is silent.
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

// distrust withdraws the incarnations that may lack a pin: those that did not answer, or all if it may lie in any.
func (s *synced) distrust(unreachable bool) {
	maps.DeleteFunc(s.heard, func(_ pin.Incarnation, heard time.Time) bool {
		return !unreachable || !s.partial || heard.Before(s.asked)
	})
}
