package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// overlapLimit is for two nodes that serve side by side while the store keeps its memory and all reach it. The lower
// one is fenced by its next refresh, after 5.5 s; two exchanges in five of a refresh fail here.
const overlapLimit = 15 * time.Second

// oracle knows what no process knows: who serves the room, and how each pin came to be.
type oracle struct {
	record *record

	mu       sync.Mutex // guards the fields below
	owners   map[pin.Fence]pin.BootID
	made     map[pin.Fence]*making    // ever current
	holding  map[pin.BootID]pin.Fence // now
	fenced   map[pin.Fence]bool       // raised by an owner that has the room open
	vouched  map[pin.Fence]bool       // let in by a majority
	removed  *making                  // removed by a sweep, with its justification, until another is written
	faults   []string
	troubles int       // cut off from the store
	since    time.Time // of serving side by side in calm; or zero
	notes    notes
}

// notes are no faults.
type notes struct {
	sideBySide time.Duration  // the longest time of two nodes side by side in calm
	excused    map[excuse]int // second nodes that began to serve, by reason
}

func (n *notes) add(other notes) {
	n.sideBySide = max(n.sideBySide, other.sideBySide)
	if n.excused == nil {
		n.excused = make(map[excuse]int)
	}
	for why, times := range other.excused {
		n.excused[why] += times
	}
}

func (n notes) String() string {
	text := fmt.Sprintf("two nodes side by side for at most %v", n.sideBySide.Round(time.Millisecond))
	for _, why := range slices.Sorted(maps.Keys(n.excused)) {
		text += fmt.Sprintf("; %d times %s", n.excused[why], why)
	}
	return text
}

// excuse is why a second node may begin to serve.
type excuse string

const (
	movedAway excuse = "the room was moved away with justification"
	vouched   excuse = "the other one was let open the room by a majority that the store did not answer"
	outrun    excuse = "its pin was moved away with justification while it opened the room"
)

// making is how a pin came to be.
type making struct {
	pin  pin.Pin
	from pin.Fence        // replaced; or zero
	why  []*justification // of the call that made it, and of those that accepted it
}

func newOracle(r *record) *oracle {
	return &oracle{
		record: r, owners: make(map[pin.Fence]pin.BootID), made: make(map[pin.Fence]*making), fenced: make(map[pin.Fence]bool), vouched: make(map[pin.Fence]bool),
		holding: make(map[pin.BootID]pin.Fence), notes: notes{excused: make(map[excuse]int)},
	}
}

// against reports whether those who made or accepted the pin had a justification against boot.
func (m *making) against(boot pin.BootID) bool {
	for _, why := range m.why {
		if why.has(boot) {
			return true
		}
	}
	return false
}

// wrote checks a write: fences are unique, above the replaced one and above all that anybody was told of.
func (b *oracle) wrote(old value, done write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := done.next
	if p.IsZero() {
		b.removed = &making{pin: old.pin, why: []*justification{done.why}}
		return
	}
	known, ok := b.made[p.Fence]
	switch {
	case ok && known.pin != p:
		b.record.fault("%s and %s have one fence", show(known.pin), show(p))
	case ok: // Written again.
	case old.absent() && !done.known.Less(p.Fence), !old.absent() && !old.pin.Fence.Less(p.Fence):
		b.record.fault("%v was replaced by %s, though %v was known", old, show(p), done.known)
	}
	if !ok {
		b.made[p.Fence] = &making{pin: p, from: old.pin.Fence}
		if b.removed != nil { // A claim after a removal inherits its justification.
			b.made[p.Fence].from, b.made[p.Fence].why = b.removed.pin.Fence, b.removed.why
		}
	}
	b.removed = nil
	b.blame(p, done.why)
}

// accepted: a call returned p.
func (b *oracle) accepted(p pin.Pin, why *justification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame(p, why)
}

// blame adds to the justification of p. It needs mu.
func (b *oracle) blame(p pin.Pin, why *justification) {
	if m := b.made[p.Fence]; m != nil && why != nil {
		m.why = append(m.why, why)
	}
}

// movedAway reports whether p comes, over pins above the fence, from somebody with a justification against boot.
func (b *oracle) movedAway(p, above pin.Fence, boot pin.BootID) bool {
	m := b.made[p]
	switch {
	case m == nil:
		return false
	case m.against(boot):
		return true
	}
	parents := []pin.Fence{m.from}
	for _, why := range m.why { // Its node said that it has the room open under an earlier pin.
		parents = append(parents, why.saidBy(m.pin.Boot))
	}
	for _, before := range parents {
		if above.Less(before) && before.Less(p) && b.movedAway(before, above, boot) {
			return true
		}
	}
	return false
}

// serving checks a boot that begins to serve: no fence is shared, and a live node that serves under the highest must
// be excused.
func (b *oracle) serving(boot pin.BootID, p pin.Pin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	owner, begun := b.owners[p.Fence]
	if begun && owner != boot {
		b.record.fault("%s and %s both served under %v", owner, boot, p.Fence)
	}
	_, already := b.holding[boot] // It raised its own fence.
	var served pin.Fence          // the highest that is served and not fenced by its owner
	for other, f := range b.holding {
		switch {
		case b.fenced[f]:
		case already && other != boot && f.Less(p.Fence):
			b.fenced[f] = true // It must hand over.
		default:
			served = higher(served, f)
		}
	}
	for other, f := range b.holding { // At most one holds the highest.
		if begun || already || other == boot || f != served {
			continue
		}
		switch {
		case b.movedAway(p.Fence, f, other):
			b.notes.excused[movedAway]++
		case f.Less(p.Fence) && b.vouched[f]:
			b.notes.excused[vouched]++ // The store would have refused its pin.
		case p.Fence.Less(f) && b.movedAway(f, p.Fence, boot):
			// Its pin was moved with a justification while it opened the room; it learns of that soon.
			b.notes.excused[outrun]++
		default:
			b.faults = append(b.faults, fmt.Sprintf("%v: %s begins to serve under %v, though %s, against which nobody had justification, serves under the highest fence %v",
				time.Duration(b.record.now()), boot, p.Fence, other, f))
		}
	}
	b.owners[p.Fence] = boot
	b.holding[boot] = p.Fence
	b.noteOverlap()
}

// vouchedFor: a majority stood in for the store.
func (b *oracle) vouchedFor(p pin.Pin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vouched[p.Fence] = true
}

// servesNoMore: the boot died or handed over.
func (b *oracle) servesNoMore(boot pin.BootID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holding, boot)
	b.noteOverlap()
}

// disturbance counts processes that are cut off.
func (b *oracle) disturbance(more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles += more
	b.noteOverlap()
}

// disturbed: the store lost data.
func (b *oracle) disturbed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends()
	b.noteOverlap()
}

// noteOverlap begins or ends a time of two nodes side by side in calm. It needs mu.
func (b *oracle) noteOverlap() {
	switch together := len(b.holding) > 1 && b.troubles == 0; {
	case !together:
		b.ends()
	case b.since.IsZero():
		b.since = time.Now()
	}
}

// ends needs mu.
func (b *oracle) ends() {
	if b.since.IsZero() {
		return
	}
	long := time.Since(b.since)
	b.since, b.notes.sideBySide = time.Time{}, max(b.notes.sideBySide, long)
	if long > overlapLimit {
		b.faults = append(b.faults, fmt.Sprintf("%v: two nodes have served side by side for %v, though both reached the store", time.Duration(b.record.now()), long))
	}
}

func (b *oracle) verdict() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends()
	return b.faults
}
