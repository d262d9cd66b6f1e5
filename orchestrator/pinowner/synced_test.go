package pinowner

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// The store is steady since the first answer, and again since the first answer after a silence.
func TestSteadyStore(t *testing.T) {
	var s synced
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var none pin.Incarnations
	if got := s.steadyFor(at(0)); got != 0 {
		t.Errorf("steady for %v before any answer", got)
	}
	s.refreshed(none, at(0), true, true)
	for second := 1; second <= 10; second++ {
		s.answer(none, at(second), true)
	}
	if got := s.steadyFor(at(11)); got != 11*time.Second {
		t.Errorf("steady for %v, want 11 s", got)
	}
	s.answer(none, at(13), false)
	if got := s.steadyFor(at(14)); got != 0 {
		t.Errorf("steady for %v while a part is silent", got)
	}
	s.answer(none, at(15), true)
	if got := s.steadyFor(at(16)); got != time.Second {
		t.Errorf("steady for %v, want the second since it answered again", got)
	}
}
