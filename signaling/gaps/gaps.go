// Package gaps gathers what clients tell after their room moved: how long they had no media, and how many are back. Of each room and
// fence it records one event for this signaling node's clients.
package gaps

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// After the first report the others are waited for so long at most.
	gatherFor = 5 * time.Second
	// Rooms that are waited for. Past it a room's gaps are only logged.
	maxRooms = 10_000
)

type key struct {
	room  ring.RoomID
	fence pin.Fence
}

// Gaps is one signaling node's. It is safe for concurrent use; a nil Gaps gathers nothing.
type Gaps struct {
	node     ring.NodeID
	recorder *events.Recorder

	mu       sync.Mutex
	gathered map[key]*events.Event // guarded by mu
}

// New returns Gaps of this signaling node.
func New(node ring.NodeID, recorder *events.Recorder) *Gaps {
	return &Gaps{node: node, recorder: recorder, gathered: map[key]*events.Event{}}
}

// Report is one client that has media again under the fence, after a gap. people is how many clients of the room this node has.
func (g *Gaps) Report(room ring.RoomID, fence pin.Fence, gap time.Duration, people int) {
	if g == nil {
		return
	}
	k := key{room, fence}
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.gathered[k]
	if e == nil {
		if len(g.gathered) >= maxRooms {
			return
		}
		e = &events.Event{Kind: events.RoomBack, Room: room, Node: g.node, About: fence.String()}
		g.gathered[k] = e
		time.AfterFunc(gatherFor, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.record(k)
		})
	}
	e.Back++
	e.Peers = max(e.Peers, people, e.Back)
	e.WorstGapMillis = max(e.WorstGapMillis, gap.Milliseconds())
	if e.Back == e.Peers {
		// Everybody is back.
		g.record(k)
	}
}

// record needs mu.
func (g *Gaps) record(k key) {
	if e := g.gathered[k]; e != nil {
		delete(g.gathered, k)
		g.recorder.Record(*e)
	}
}
