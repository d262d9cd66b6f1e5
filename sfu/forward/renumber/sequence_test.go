package renumber

import "testing"

func TestSequenceTracker(t *testing.T) {
	var tr Tracker
	type step struct {
		in   uint16
		want int // relative to the first, -1: refused
	}
	for i, s := range []step{
		{65534, 0}, {65535, 1}, {1, 3}, {0, 2}, {2, 4}, // turns over, out of order
		{30000, 5}, {30001, 6}, // far ahead: a new beginning, no gap
		{100, -1}, {30002, 7}, // a stray one
		{100, -1}, {5000, -1}, // and two that have nothing to do with each other
		{200, -1}, {201, 8}, {202, 9}, // two in a row: a new beginning
	} {
		got, ok := tr.Extend(s.in)
		if ok != (s.want >= 0) || ok && got != 1<<16+uint32(s.want) {
			t.Fatalf("step %d: %d %v", i, int(got)-1<<16, ok)
		}
	}
}
