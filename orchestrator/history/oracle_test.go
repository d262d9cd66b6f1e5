package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// overlapLimit is for how long two nodes may have the room open while every process reaches the store and the store keeps its
// memory. The lower one learns of the higher by its next refresh, after 5.5 s at most; two exchanges in five of a refresh fail here, and are
// repeated half a second later.
const overlapLimit = 15 * time.Second

// oracle is what no process of the schedule knows as a whole: who serves the room, and how each pin came to be.
type oracle struct {
	record *record

	mu       sync.Mutex // guards the fields below
	owners   map[pin.Fence]pin.BootID
	made     map[pin.Fence]*making    // everything that ever stood
	holding  map[pin.BootID]pin.Fence // who serves the room now
	fenced   map[pin.Fence]bool       // served under, but an owner that has the room open raised its own above it
	vouched  map[pin.Fence]bool       // let in by a majority
	removed  *making                  // the pin that a sweep has removed, with its a justification, until another one is written
	faults   []string
	troubles int       // processes that are cut off from the store just now
	since    time.Time // from when on two have served side by side in calm; zero when they do not
	notes    notes
}

// notes are what the oracle saw that is no fault.
type notes struct {
	sideBySide time.Duration  // the longest that two nodes served the room in calm
	excused    map[excuse]int // how often a second node began to serve, by the reason
}

// add takes another schedule's notes in.
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
	from pin.Fence        // what it replaced; zero where nothing stood
	why  []*justification // of the call that made it and of those that took it for good
}

func newOracle(r *record) *oracle {
	return &oracle{
		record: r, owners: make(map[pin.Fence]pin.BootID), made: make(map[pin.Fence]*making), fenced: make(map[pin.Fence]bool), vouched: make(map[pin.Fence]bool),
		holding: make(map[pin.BootID]pin.Fence), notes: notes{excused: make(map[excuse]int)},
	}
}

// against reports whether those who made the pin or gave it out had a justification against boot when they did.
func (m *making) against(boot pin.BootID) bool {
	for _, why := range m.why {
		if why.has(boot) {
			return true
		}
	}
	return false
}

// wrote judges a write that the store has done: no two pins have one fence, and a fence is above the one it
// replaces and above what anybody was told of before.
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
		if b.removed != nil { // Who claims where a pin was removed owes it to the sweep.
			b.made[p.Fence].from, b.made[p.Fence].why = b.removed.pin.Fence, b.removed.why
		}
	}
	b.removed = nil
	b.blame(p, done.why)
}

// accepted notes that a call ended with p.
func (b *oracle) accepted(p pin.Pin, why *justification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame(p, why)
}

// blame adds to the a justification behind p. Call it with mu held.
func (b *oracle) blame(p pin.Pin, why *justification) {
	if m := b.made[p.Fence]; m != nil && why != nil {
		m.why = append(m.why, why)
	}
}

// movedAway reports whether p comes, over pins above the given fence, from somebody who had a justification against boot.
func (b *oracle) movedAway(p, above pin.Fence, boot pin.BootID) bool {
	m := b.made[p]
	switch {
	case m == nil:
		return false
	case m.against(boot):
		return true
	}
	parents := []pin.Fence{m.from}
	for _, why := range m.why { // Its node said that it has the room open, or is about to, under a pin that it goes on from.
		parents = append(parents, why.saidBy(m.pin.Boot))
	}
	for _, before := range parents {
		if above.Less(before) && before.Less(p) && b.movedAway(before, above, boot) {
			return true
		}
	}
	return false
}

// serving notes under which fence a boot serves the room: no other may have the same, and no other may begin to serve it while a live
// node serves it under the highest, unless its pin comes from somebody who had a justification against that one.
func (b *oracle) serving(boot pin.BootID, p pin.Pin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	owner, begun := b.owners[p.Fence]
	if begun && owner != boot {
		b.record.fault("%s and %s both served under %v", owner, boot, p.Fence)
	}
	_, already := b.holding[boot] // Who raises the fence of its open room does not begin to serve it.
	var served pin.Fence          // the highest that anybody serves under and that no owner has fenced
	for other, f := range b.holding {
		switch {
		case b.fenced[f]:
		case already && other != boot && f.Less(p.Fence):
			b.fenced[f] = true // It has to hand over, whatever becomes of that owner.
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
			b.notes.excused[vouched]++ // The store would have said that its pin does not stand any more.
		case p.Fence.Less(f) && b.movedAway(f, p.Fence, boot):
			// It asked for its pin, then somebody who had a justification against it moved the pin, and then it opened the room: it learns of
			// that a moment later.
			b.notes.excused[outrun]++
		default:
			b.faults = append(b.faults, fmt.Sprintf("%v: %s begins to serve under %v, though %s, against which nobody had justification, serves under the highest fence %v",
				time.Duration(b.record.now()), boot, p.Fence, other, f))
		}
	}
	b.owners[p.Fence] = boot
	b.holding[boot] = p.Fence
	b.look()
}

// vouchedFor: a node was let in, or people were let into its room, without a word of the store about p.
func (b *oracle) vouchedFor(p pin.Pin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vouched[p.Fence] = true
}

// servesNoMore: the boot died, or gave the room up.
func (b *oracle) servesNoMore(boot pin.BootID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holding, boot)
	b.look()
}

// disturbance counts the processes that are cut off from the store.
func (b *oracle) disturbance(more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles += more
	b.look()
}

// disturbed: the store has lost something.
func (b *oracle) disturbed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends()
	b.look()
}

// look begins or ends a time in which two serve side by side and nothing keeps them from learning of it. Call it with mu held.
func (b *oracle) look() {
	switch together := len(b.holding) > 1 && b.troubles == 0; {
	case !together:
		b.ends()
	case b.since.IsZero():
		b.since = time.Now()
	}
}

// ends ends such a time. Call it with mu held.
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

// verdict is what was wrong.
func (b *oracle) verdict() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends()
	return b.faults
}
