package history

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// The oracle reports a fault unless a justification excuses it. A justification counts for the pin that it led to, for pins made
// from that pin, and for nothing else.
func TestOracleJudgesWhoBeginsToServe(t *testing.T) {
	at := func(boot pin.BootID, epoch uint64) pin.Pin {
		return pin.Pin{Fence: pin.Fence{Epoch: epoch, Nonce: 1}, Node: "n", Boot: boot}
	}
	suspicion := newJustification()
	suspicion.add("a", thoughtDead)
	first, moved, again := at("a", 1), at("b", 2), at("c", 3)
	back := newJustification()
	back.said(moved)
	for name, c := range map[string]struct {
		writes []write
		begins pin.Pin
		after  time.Duration // the two serve for so long
		says   string

		vouched pin.Pin // by a majority
	}{
		"nobody had justification": {writes: []write{{old: value{pin: first}, next: moved}}, begins: moved, says: "begins to serve"},
		"moved with justification": {writes: []write{{old: value{pin: first}, next: moved, why: suspicion}}, begins: moved},
		"and they do not learn of it": {
			writes: []write{{old: value{pin: first}, next: moved, why: suspicion}}, begins: moved, after: time.Minute, says: "side by side",
		},
		"moved on from there": {
			writes: []write{{old: value{pin: first}, next: moved, why: suspicion}, {old: value{pin: moved}, next: again}}, begins: again,
		},
		"handed back to where it was moved": {
			writes: []write{{old: value{pin: first}, next: moved, why: suspicion}, {next: at("b", 4), why: back}}, begins: at("b", 4),
		},
		"the other was vouched for": {writes: []write{{old: value{pin: first}, next: moved}}, begins: moved, vouched: first},
		"it was itself vouched for": {
			writes: []write{{old: value{pin: first}, next: moved}}, begins: moved, vouched: moved, says: "begins to serve",
		},
		"justification led to another pin": {
			writes: []write{{old: value{pin: first}, next: moved, why: suspicion}, {next: again}}, begins: again, says: "begins to serve",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newOracle(newRecord())
				b.wrote(value{}, write{next: first})
				b.serving("a", first)
				for _, w := range c.writes {
					b.wrote(w.old, w)
				}
				b.vouchedFor(c.vouched)
				b.serving(c.begins.Boot, c.begins)
				<-time.After(c.after)
				faults := strings.Join(b.verdict(), "\n")
				if (faults == "") != (c.says == "") || !strings.Contains(faults, c.says) {
					t.Errorf("found %q, want %q", faults, c.says)
				}
			})
		})
	}
}

// An owner whose open room was moved away reclaims it, and dies. The node that it fenced must hand over, whoever
// takes the room next. If the owner was dead before, that node may go on.
func TestOracleForgetsWhoWasFencedByAnOwner(t *testing.T) {
	at := func(boot pin.BootID, epoch uint64) pin.Pin {
		return pin.Pin{Fence: pin.Fence{Epoch: epoch, Nonce: 1}, Node: "n", Boot: boot}
	}
	against := func(boot pin.BootID) *justification {
		why := newJustification()
		why.add(boot, thoughtDead)
		return why
	}
	for name, stoodUp := range map[string]bool{"it stood up": true, "it was dead before": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newOracle(newRecord())
				first, moved, raised, next := at("a", 1), at("b", 2), at("a", 3), at("c", 4)
				b.wrote(value{}, write{next: first})
				b.serving("a", first)
				b.wrote(value{pin: first}, write{next: moved, why: against("a")})
				b.serving("b", moved)
				if !stoodUp {
					b.servesNoMore("a")
				}
				b.wrote(value{pin: moved}, write{next: raised})
				if stoodUp {
					b.serving("a", raised)
					b.servesNoMore("a")
				}
				b.wrote(value{pin: raised}, write{next: next, why: against("a")})
				b.serving("c", next)
				if faults := b.verdict(); (len(faults) == 0) != stoodUp {
					t.Errorf("found %q", faults)
				}
			})
		})
	}
}

// A write whose sender was not told is recorded if it took effect. One without effect is not: each would double the
// search.
func TestRecordKeepsOnlyUnansweredWritesThatTookEffect(t *testing.T) {
	for name, c := range map[string]struct {
		denied bool
		writes int // at most one of fifty claims finds nothing
	}{
		"refused": {denied: true},
		"claimed": {writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{seed: 1, faults: faults{slow: true, lose: true, late: true}, running: newWaitGroup(), record: newRecord()}
				w.store = &store{record: w.record, clock: time.Now, trouble: func(int) {}}
				if c.denied {
					w.denied.Store(1)
				}
				l, asks := &link{world: w}, newCaller(1, "a", 1)
				for i := range uint64(50) {
					ctx, cancel := context.WithTimeout(asks.with(t.Context()), 2*time.Millisecond) // Shorter than a round trip.
					_, _, err := l.Claim(ctx, room, pin.Pin{Fence: pin.Fence{Epoch: i + 1, Nonce: 1}, Node: "n", Boot: "b"}, "")
					cancel()
					if err == nil {
						t.Fatal("a claim was answered")
					}
				}
				w.running.Wait()
				ops := w.record.ops
				if len(ops) != c.writes {
					t.Fatalf("%d writes are recorded, want %d:\n%s", len(ops), c.writes, text(ops))
				}
				for _, op := range ops {
					if op.Return < op.Call {
						t.Errorf("it may take effect at any later time: %s", text(ops))
					}
				}
			})
		})
	}
}
