// Package gaps gathers what clients tell after their room moved: how long they had no media, and how many are back. Of each room and
// fence it records one event for this signaling node's clients, and one more for each that comes back late.
package gaps

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// After the first report the others are waited for so long at most.
	gatherFor = 5 * time.Second
	// Whoever comes back after that is told of alone, for so long after the first report.
	rememberFor = time.Minute
	// Rooms that are remembered. Past it a room's gaps are only logged.
	maxRooms = 10_000
)

type key struct {
	room  ring.RoomID
	fence pin.Fence
}

// report is what is known of one room and fence.
type report struct {
	event events.Event
	// recorded says that the event is written, and late counts the clients that came back after that.
	recorded bool
	late     int
}

// Gaps is one signaling node's. It is safe for concurrent use; a nil Gaps gathers nothing.
type Gaps struct {
	node     ring.NodeID
	recorder *events.Recorder

	mu       sync.Mutex
	gathered map[key]*report // guarded by mu
}

// New returns Gaps of this signaling node.
func New(node ring.NodeID, recorder *events.Recorder) *Gaps {
	return &Gaps{node: node, recorder: recorder, gathered: map[key]*report{}}
}

// Report is one client that has media again under the fence, after a gap. people is how many clients of the room this node has.
func (g *Gaps) Report(room ring.RoomID, fence pin.Fence, gap time.Duration, people int) {
	if g == nil {
		return
	}
	k := key{room, fence}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.gathered[k]
	if r == nil {
		if len(g.gathered) >= maxRooms {
			return
		}
		r = &report{event: events.Event{Kind: events.RoomBack, Room: room, Node: g.node, About: fence.String()}}
		g.gathered[k] = r
		time.AfterFunc(gatherFor, func() { g.record(r) })
		time.AfterFunc(rememberFor, func() { g.forget(k) })
	}
	if r.recorded {
		r.late++
		late := events.Event{
			Kind: events.RoomBack, Room: room, Node: g.node, Back: 1, WorstGapMillis: gap.Milliseconds(), About: fmt.Sprintf("%s+%d", fence, r.late),
		}
		g.recorder.Record(late)
		return
	}
	e := &r.event
	e.Back++
	e.Peers = max(e.Peers, people, e.Back)
	e.WorstGapMillis = max(e.WorstGapMillis, gap.Milliseconds())
	if e.Back == e.Peers {
		// Everybody is back.
		g.write(r)
	}
}

func (g *Gaps) record(r *report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.write(r)
}

// write needs mu.
func (g *Gaps) write(r *report) {
	if !r.recorded {
		r.recorded = true
		g.recorder.Record(r.event)
	}
}

func (g *Gaps) forget(k key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.gathered, k)
}
