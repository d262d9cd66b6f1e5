package standby

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/control"
)

// woken is an owner and its standby, with what is on its way between them. The owner may be frozen or cut off at any time, for as long as it likes,
// and wake up.
type woken struct {
	c        *counted
	table    *Table
	link     *link
	now      time.Time
	gone     chan struct{}
	reports  []*control.StandbyReport
	receipts []*control.StandbyReceipt
	added    []name
	frozen   bool
	// first is the number behind which the standby begins, 0 before it goes on with the connection.
	first uint64
}

func newWoken() *woken {
	c := newCounted()
	return &woken{c: c, table: newTable(), link: newLink(c), now: time.Now(), gone: make(chan struct{})}
}

// seals has the owner send packets as far as its bound allows.
func (w *woken) seals(packets uint64) {
	if w.frozen || w.c.stopped {
		return
	}
	if w.c.sent += packets; w.c.limit > 0 {
		w.c.sent = min(w.c.sent, w.c.limit)
	}
}

// passes has the oldest report or receipt arrive.
func (w *woken) passes() {
	if len(w.reports) > 0 {
		receipt, added := w.table.take(w.reports[0], w.gone, w.now)
		w.reports, w.receipts, w.added = w.reports[1:], append(w.receipts, receipt), append(w.added, added...)
		return
	}
	if len(w.receipts) > 0 && !w.frozen {
		w.link.acknowledged(w.receipts[0])
		w.receipts = w.receipts[1:]
	}
}

func (w *woken) tells() {
	if w.frozen {
		return
	}
	w.now = w.now.Add(2 * numbersEvery)
	if report := w.link.report(w.now); report != nil {
		w.reports = append(w.reports, report)
	}
}

// breaks ends the stream, for a moment or for longer than the standby keeps what it holds. The owner notices when it runs, and tells all again.
func (w *woken) breaks(long bool) {
	w.reports, w.receipts = nil, nil
	close(w.gone)
	if long {
		w.table.forget(w.added, w.gone)
		w.added = nil
	}
	w.gone = make(chan struct{})
	for _, e := range w.link.list() {
		e.told, e.pending = nil, nil
	}
}

// goesOn has the standby take the connection, if it holds it.
func (w *woken) goesOn() {
	n, held := w.table.byPlace[place{"room", "peer"}]
	if !held || w.first > 0 || w.table.held[n].Numbers == nil {
		return
	}
	h := w.table.held[n]
	w.table.claim(n, h)
	w.first = h.Numbers.GetSealed()[1] + jump
}

// TestAWokenOwnerSealsNothingOfTheStandby: however long an owner was frozen or cut off while its room went to the standby, and whatever it does when it
// wakes, it seals nothing behind the number at which the standby begins, and it stops once it hears the standby.
func TestAWokenOwnerSealsNothingOfTheStandby(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWoken()
		w.tells()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); step {
			case 0, 1:
				w.seals(uint64(rapid.IntRange(1, 3*jump).Draw(t, "packets")))
			case 2, 3:
				w.tells()
			case 4, 5, 6:
				w.passes()
			case 7:
				w.frozen = !w.frozen
			case 8:
				w.breaks(rapid.Bool().Draw(t, "for long"))
			case 9:
				w.goesOn()
			}
			w.check(t)
		}
		w.goesOn()
		w.frozen = false
		for range 10 {
			w.seals(3 * jump)
			w.check(t)
			w.tells()
			for range 4 {
				w.passes()
			}
		}
		if w.first > 0 && !w.c.stopped {
			t.Fatal("the owner has heard the standby, and goes on")
		}
	})
}

func (w *woken) check(t *rapid.T) {
	if w.first > 0 && w.c.sent > w.first {
		t.Fatal(fmt.Sprintf("the owner has sealed %d, and the standby begins behind %d", w.c.sent, w.first))
	}
}
