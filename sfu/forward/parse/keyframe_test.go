package parse

import (
	"testing"
	"time"
)

// TestKeyframeStarts: of the packets that look like the first one of a keyframe, one is.
func TestKeyframeStarts(t *testing.T) {
	type packet struct {
		sequence, timestamp uint32
		bare, begins        bool
	}
	const start = 1 << 16
	for name, c := range map[string]struct {
		packets []packet
		count   uint64
		first   uint32
	}{
		"one keyframe":                       {[]packet{{start, 1, false, true}}, 1, start},
		"two slices":                         {[]packet{{start, 1, false, true}, {start + 1, 1, true, false}, {start + 2, 1, true, false}}, 1, start},
		"two keyframes":                      {[]packet{{start, 1, false, true}, {start + 5, 2, false, true}}, 2, start + 5},
		"its parameter sets came late":       {[]packet{{start + 1, 1, true, false}, {start, 1, false, true}}, 1, start},
		"an earlier packet came late":        {[]packet{{start + 1, 1, false, true}, {start, 1, false, true}}, 1, start},
		"its parameter sets were lost":       {[]packet{{start + 1, 1, true, false}, {start + 2, 1, true, false}}, 0, 0},
		"a publisher without parameter sets": {[]packet{{start, 1, true, false}, {start + 5, 2, true, true}}, 1, start + 5},
	} {
		var k KeyframeStarts
		for i, p := range c.packets {
			if got := k.Begins(p.sequence, p.timestamp, p.bare, time.Unix(int64(i), 0)); got != p.begins {
				t.Errorf("%s: packet %d begins a keyframe: %v", name, i, got)
			}
		}
		if k.Count != c.count || k.First != c.first {
			t.Errorf("%s: %d keyframes, the last begins at %d, want %d at %d", name, k.Count, k.First, c.count, c.first)
		}
	}
}
