package share

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

var ceiling = headroom.Egress{BitsPerSecond: 100_000_000, PacketsPerSecond: 100_000}

// node is a media node that sends what the levels let through, times a factor.
type node struct {
	sharer Sharer
	now    time.Time
	rooms  []Room
	factor float64 // of what layers cost
	spent  float64 // processor time for a bit, as a share
}

// call adds a room: everybody's lowest layers, and steps beyond.
func (n *node) call(id string, sound, lowest uint64, steps map[forward.Level]uint64) {
	r := Room{ID: ring.RoomID(id), Level: Newcomer(!n.sharer.Since().IsZero(), 0)}
	r.Demand.Sound, r.Demand.Steps[1] = sound, lowest
	for level, bits := range steps {
		r.Demand.Steps[level] = bits
	}
	n.rooms = append(n.rooms, r)
}

// sent is in bits per second.
func (n *node) sent() (bits float64) {
	for i := range n.rooms {
		bits += n.factor * float64(n.rooms[i].Demand.UpTo(n.rooms[i].Level))
	}
	return bits
}

func (n *node) used() float64 { return n.sent() / float64(ceiling.BitsPerSecond) }

// pass lets time go by in steps.
func (n *node) pass(d time.Duration) (most float64) {
	for range d / Every {
		used := Used{Egress: n.used(), Processor: n.spent * n.sent()}
		for i := range n.rooms {
			n.rooms[i].Demand.Aimed = n.rooms[i].Demand.UpTo(n.rooms[i].Level)
		}
		n.sharer.Next(n.now, used, ceiling, n.rooms)
		n.now = n.now.Add(Every)
		most = max(most, n.used())
	}
	return most
}

func newNode() *node { return &node{now: time.Unix(1_800_000_000, 0), factor: 1} }

// Rooms come until they would send twice the ceiling: it is never passed, sound and the lowest layers flow, the largest pictures
// went first, and when the rooms go again all comes back.
func TestTwiceTheCeiling(t *testing.T) {
	n := newNode()
	for i := range 20 {
		n.call(fmt.Sprint(i), 500_000, 1_000_000, map[forward.Level]uint64{30: 2_500_000, 40: 6_000_000})
		n.pass(Every)
		if n.used() > 1 {
			t.Fatalf("%d rooms: %.2f of the ceiling", i+1, n.used())
		}
	}
	n.pass(20 * time.Second)
	if n.sharer.Since().IsZero() || Newcomer(!n.sharer.Since().IsZero(), 0) != forward.LowestLevels {
		t.Error("nothing is held back")
	}
	if used := n.used(); used < 0.75 || used > tooMuch {
		t.Errorf("%.2f of the ceiling is used", used)
	}
	for _, r := range n.rooms {
		if r.Level < 30 {
			t.Errorf("room %s is at level %d: 20 rooms up to level 30 are 80 Mbit/s", r.ID, r.Level)
		}
	}
	n.rooms = n.rooms[:8]
	n.pass(time.Minute)
	if !n.sharer.Since().IsZero() || n.used() < 0.79 {
		t.Errorf("8 rooms of 10 Mbit/s use %.2f", n.used())
	}
	for _, r := range n.rooms {
		if r.Level != forward.AllLevels {
			t.Errorf("room %s stays at level %d", r.ID, r.Level)
		}
	}
}

// What is sent may be far more than layers cost, by retransmissions or small packets; then processor time may be what is short.
func TestWhatABitCostsIsLearnt(t *testing.T) {
	for name, c := range map[string]struct{ factor, spent float64 }{
		"retransmissions": {1.6, 0},
		"processor":       {1, 2.0 / 100_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.factor, n.spent = c.factor, c.spent
			for i := range 10 {
				n.call(fmt.Sprint(i), 500_000, 1_000_000, map[forward.Level]uint64{30: 2_500_000, 40: 5_000_000})
			}
			n.pass(30 * time.Second)
			if most := n.pass(time.Minute); most > 1 || n.spent*n.sent() > 1 {
				t.Errorf("%.2f of the ceiling, %.2f of the processor", most, n.spent*n.sent())
			}
			if n.used() < 0.3 {
				t.Errorf("%.2f is used, and more could be", n.used())
			}
		})
	}
}

// Handshakes of a crowd take all of the processor: that is no reason to show nobody.
func TestProcessorTimeDoesNotHideAnybody(t *testing.T) {
	n := newNode()
	n.call("a", 500_000, 10_000_000, map[forward.Level]uint64{30: 5_000_000})
	for i := range n.rooms {
		n.rooms[i].Demand.Aimed = n.rooms[i].Demand.UpTo(n.rooms[i].Level)
	}
	for range 400 {
		n.sharer.Next(n.now, Used{Egress: n.used(), Processor: 20}, ceiling, n.rooms)
		n.now = n.now.Add(Every)
	}
	if level := n.rooms[0].Level; level >= 30 || level < 1 {
		t.Errorf("level %d", level)
	}
}

// Rooms of one size vary a little. Half of their pictures are held back: always the same ones, and as much is sent as may be.
func TestRoomsOfOneSizeDoNotTakeTurns(t *testing.T) {
	n := newNode()
	for i := range 10 {
		n.call(fmt.Sprint(i), 500_000, 1_000_000, map[forward.Level]uint64{40: 13_500_000})
	}
	n.pass(30 * time.Second)
	large := func() (rooms string) {
		for _, r := range n.rooms {
			if r.Level >= 40 {
				rooms += string(r.ID)
			}
		}
		return rooms
	}
	first := large()
	if len(first) < 4 {
		t.Fatalf("the pictures of %q are large, %.2f of the ceiling is used", first, n.used())
	}
	for i := range 600 {
		for k := range n.rooms {
			n.rooms[k].Demand.Steps[40] = 13_500_000 + uint64((i*7+k*13)%10)*40_000
		}
		n.pass(Every)
		if now := large(); now != first {
			t.Fatalf("the pictures of %q were large, and now those of %q", first, now)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNode()
		n.factor = rapid.Float64Range(1, 2).Draw(t, "factor")
		for i := range rapid.IntRange(0, 30).Draw(t, "rooms") {
			steps := map[forward.Level]uint64{}
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				steps[forward.Level(rapid.IntRange(2, forward.Levels-1).Draw(t, "level"))] = rapid.Uint64Range(1, 20_000_000).Draw(t, "bits")
			}
			n.call(fmt.Sprint(i), rapid.Uint64Range(0, 1_000_000).Draw(t, "sound"), rapid.Uint64Range(0, 3_000_000).Draw(t, "lowest"), steps)
		}
		n.pass(30 * time.Second)
		sound, limited := 0.0, false
		for _, r := range n.rooms {
			sound += n.factor * float64(r.Demand.Sound) / 100_000_000
			limited = limited || r.Demand.UpTo(r.Level) < r.Demand.UpTo(forward.AllLevels)
		}
		if used := n.used(); used > max(tooMuch+0.01, sound) {
			t.Fatalf("%.3f of the ceiling, of which sound %.3f", used, sound)
		}
		if limited == n.sharer.Since().IsZero() {
			t.Fatalf("holds back: %v, and says so since %v", limited, n.sharer.Since())
		}
		// It comes to rest.
		n.pass(2 * time.Minute)
		before := make([]forward.Level, len(n.rooms))
		for i, r := range n.rooms {
			before[i] = r.Level
		}
		n.pass(20 * time.Second)
		for i, r := range n.rooms {
			if r.Level != before[i] {
				t.Fatalf("room %s goes from level %d to %d and nothing has changed", r.ID, before[i], r.Level)
			}
		}
		// And all comes back once there is less.
		n.rooms = n.rooms[:min(len(n.rooms), 1)]
		if len(n.rooms) == 1 && n.factor*float64(n.rooms[0].Demand.UpTo(forward.AllLevels)) < 0.5e8 {
			n.pass(2 * time.Minute)
			if n.rooms[0].Level != forward.AllLevels {
				t.Fatalf("alone it stays at level %d", n.rooms[0].Level)
			}
		}
	})
}
