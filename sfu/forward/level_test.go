package forward

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestANodeHoldsPicturesBack takes the room's level down and up again under two viewers.
func TestANodeHoldsPicturesBack(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.simulcast("alice")
		view, other := st.slot("bob", "1", KindVideo), st.slot("carol", "1", KindVideo)
		view.slot.Ready()
		other.slot.Ready()
		for _, peer := range []PeerID{"bob", "carol"} {
			st.room.SetView(peer, []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		}
		alice.run(400 * time.Millisecond)
		if d := st.room.Demand(); d.Aimed > 0 || d.Guessed < 100_000 {
			t.Errorf("nothing is measured yet: aimed at %d, guessed %d", d.Aimed, d.Guessed)
		}
		alice.run(3600 * time.Millisecond)
		d := st.room.Demand()
		if all := d.UpTo(AllLevels); all != d.Aimed || d.Guessed > 0 || all < 4_000_000 || all > 5_500_000 {
			t.Fatalf("two viewers of 2.1 Mbit/s: demand %d, aimed at %d", all, d.Aimed)
		}
		last := func(v *screenful) int {
			height := 0
			for _, p := range v.take() {
				if h := parseVP8(p.Payload).Height; h > 0 {
					height = h
				}
			}
			return height
		}
		last(view)
		last(other)
		// The levels at which something is added, highest first.
		var levels []Level
		for level := AllLevels; level > 0; level-- {
			if d.Steps[level] > 0 {
				levels = append(levels, level)
			}
		}
		if len(levels) != 3 || levels[2] != 1 {
			t.Fatalf("steps at %v, want 720, 360 and, at level 1, 180 lines", levels)
		}
		for i, lines := range []int{360, 180, 0} {
			st.room.SetLevel(levels[i] - 1)
			alice.run(3 * time.Second)
			d = st.room.Demand()
			if d.Aimed != d.UpTo(levels[i]-1) {
				t.Errorf("level %d: aimed at %d, want %d", levels[i]-1, d.Aimed, d.UpTo(levels[i]-1))
			}
			for name, v := range map[PeerID]*screenful{"bob": view, "carol": other} {
				if got := last(v); got != lines {
					t.Errorf("level %d: a keyframe of %d lines, want %d", levels[i]-1, got, lines)
				}
				if entry := st.room.Table(name)[0]; entry.Paused != (lines == 0) || entry.Peer != "alice" {
					t.Errorf("level %d: the table says %+v", levels[i]-1, entry)
				}
			}
		}
		if waits := st.room.States()["bob"].Slots[0].Waits; waits != "the node: it is near its ceiling of egress" {
			t.Errorf("it waits for %q", waits)
		}
		st.room.SetLevel(AllLevels)
		alice.run(2 * time.Second)
		if a, b := last(view), last(other); a != 720 || b != 720 {
			t.Errorf("all levels again: keyframes of %d and %d lines", a, b)
		}
	})
}

// A screen keeps its layers longest, and of cameras the largest steps go first; the order of a page decides whose lowest goes first.
func TestLevelsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := drawDemands(t)
		selection := &layerSelection{}
		for i := range demands {
			p := publication{key: trackKey{source: SourceCamera}, rungs: demands[i].layers}
			if demands[i].screen {
				p.key.source = SourceScreen
			}
			p.setLevels()
			demands[i].chosen = demands[i].top
		}
		before := AllLevels
		var sum Demand
		selection.tally = &sum
		if selection.limitToLevel(demands, AllLevels) || sum.Aimed != sum.UpTo(AllLevels) {
			t.Fatal("held back at the highest level")
		}
		selection.tally = nil
		had := spent(demands)
		for range Levels {
			before--
			for i := range demands {
				demands[i].chosen = demands[i].top
			}
			selection.limitToLevel(demands, before)
			for _, d := range demands {
				if d.screen && before >= cameraLevels-1 && d.chosen < d.top {
					t.Fatalf("level %d: a screen is held back before a camera", before)
				}
				if before >= LowestLevels && d.chosen < 0 {
					t.Fatalf("level %d: somebody is not shown", before)
				}
			}
			shown := slices.IndexFunc(demands, func(d slotDemand) bool { return d.chosen < 0 })
			for i, d := range demands {
				if shown >= 0 && i > shown && !d.screen && d.chosen >= 0 {
					t.Fatalf("level %d: the page's order: %v", before, chosen(demands))
				}
			}
			if before == 0 {
				break
			}
		}
		if got := spent(demands); got != 0 || had < got {
			t.Fatalf("%d bits of pictures at level 0", got)
		}
	})
}

// A rate that varies around the edge of a place does not move the step to and fro.
func TestStepsKeepTheirPlace(t *testing.T) {
	for _, screen := range []bool{false, true} {
		at := -1
		for i := range 200 {
			bits := uint64(900_000)
			if i%2 == 0 {
				bits = 960_000
			}
			got := int(levelOf(bits, screen, at))
			if at >= 0 && got != at {
				t.Fatalf("screen %v: %d after %d", screen, got, at)
			}
			at = got
		}
		if low, high := levelOf(1, screen, -1), levelOf(1<<40, screen, -1); low >= high || low <= LowestLevels {
			t.Errorf("screen %v: levels from %d to %d", screen, low, high)
		}
	}
}

// A layer begins with a keyframe: what its first look measured is soon no more than one of four.
func TestTheFirstLooksCountAlike(t *testing.T) {
	var m rateMeter
	for i, c := range []struct{ bytes, want float64 }{{100, 0}, {400, 400}, {200, 300}, {180, 260}, {220, 250}, {250, 250}, {350, 275}} {
		m.bytes = uint64(c.bytes)
		m.measure(measureInterval)
		if got := m.bits / 8 * measureInterval.Seconds(); got < c.want-0.1 || got > c.want+0.1 {
			t.Errorf("look %d: %.1f bytes, want %.1f", i, got, c.want)
		}
	}
}
