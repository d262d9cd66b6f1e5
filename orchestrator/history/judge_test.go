package history

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// What the oracle calls a fault, and what it excuses: a justification count for the pin that they led to and for what comes of it, not for others,
// and not for longer.
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
		after  time.Duration // so long the two serve
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

// An owner whose open room was moved away stands up for it, and dies: the node that it has fenced must hand over, and whoever takes
// the room over from that owner owes the other nothing. Where the owner was dead before, he does.
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

// A write whose sender was not told is in the history if it took effect, with the moment by which it had. One that the store refused,
// that found something else, or that never arrived had no effect, and is not: otherwise each doubles what the judge has to search.
func TestRecordKeepsOnlyUnansweredWritesThatTookEffect(t *testing.T) {
	for name, c := range map[string]struct {
		denied bool
		writes int // of fifty claims that are carried out, at most one finds nothing
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
					ctx, cancel := context.WithTimeout(asks.with(t.Context()), 2*time.Millisecond) // Shorter than the way there and back.
					_, _, err := l.Claim(ctx, room, pin.Pin{Fence: pin.Fence{Epoch: i + 1, Nonce: 1}, Node: "n", Boot: "b"})
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
