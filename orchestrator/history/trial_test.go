package history

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// trial is one schedule under one seed.
type trial struct {
	seed    uint64
	faults  faults
	broken  broken
	actions []action
}

func newTrial(seed uint64, f faults) trial {
	return trial{seed: seed, faults: f, actions: schedule(seed, f)}
}

// run checks what happened in a bubble.
func (tr trial) run(t *testing.T) verdict {
	t.Helper()
	cryptotest.SetGlobalRandom(t, tr.seed) // for nonces
	if tr.broken == noNonce {
		rand.Reader = ones{} // It is restored when the test ends.
	}
	var r *record
	var seen notes
	synctest.Test(t, func(*testing.T) {
		w := newWorld(tr.seed, tr.faults, tr.broken)
		for _, a := range tr.actions {
			w.running.Go(func() { w.run(a) })
		}
		w.running.Wait()
		w.settle()
		w.record.close()
		w.over.Store(true)
		for _, s := range w.nodes() {
			s.stop()
			<-s.ended
		}
		w.running.Wait()
		w.reports.Wait()
		w.record.faults = append(w.record.faults, w.oracle.verdict()...)
		r, seen = w.record, w.oracle.notes
	})
	v := evaluate(r) // Outside: its limit is in real time.
	v.notes = seen
	return v
}

// settle ends all faults: one node serves, and all agree.
func (w *world) settle() {
	c := newCaller(w.seed, "the end", 499)
	w.calm.Store(true)
	if live, _ := w.truth(); len(live) == 0 {
		w.boot(0)
	}
	_ = c.pause(context.Background(), 20*time.Second) // Refusals and confirmations lapse.
	for _, e := range w.everySignaling() {
		e.refreshView()
	}
	why := ""
	for range 6 {
		_ = c.pause(context.Background(), 2*refreshEvery)
		w.running.Wait()
		if why = w.disagree(c); why == "" {
			return
		}
	}
	w.record.fault("a minute after the last fault %s", why)
}

func (w *world) disagree(c *caller) string {
	var told pin.Pin
	for _, e := range w.everySignaling() {
		c.who = e.name + " at the end"
		if !e.join(c, pin.Pin{}) {
			return e.name + " cannot join"
		}
		e.mu.Lock()
		at := e.at
		e.mu.Unlock()
		if !told.IsZero() && at != told {
			return fmt.Sprintf("%s is at %s, others at %s", e.name, show(at), show(told))
		}
		told = at
	}
	live, _ := w.truth()
	for _, s := range live {
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if s.boot == told.Boot && held != told || s.boot != told.Boot && !held.IsZero() {
			return fmt.Sprintf("%s holds %s, and joins are told %s", s.boot, show(held), show(told))
		}
	}
	if stands := w.store.get(false); stands != (value{pin: told}) {
		return fmt.Sprintf("%v stands, and joins are told %s", stands, show(told))
	}
	return ""
}

// shrink drops actions while the schedule fails.
func (tr trial) shrink(t *testing.T) (trial, verdict) {
	t.Helper()
	v := tr.run(t)
	for size := (len(tr.actions) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(tr.actions); {
			less := tr
			less.actions = append(append([]action(nil), tr.actions[:from]...), tr.actions[min(from+size, len(tr.actions)):]...)
			if lv := less.run(t); len(lv.faults) > 0 {
				tr, v = less, lv
			} else {
				from += size
			}
		}
	}
	return tr, v
}

// ones gives every claim the same nonce.
type ones struct{}

func (ones) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
}
