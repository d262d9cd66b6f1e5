package peer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLossIsWhatNeverCame: however packets are dropped, swapped, doubled and
// recovered, and wherever the numbers wrap, the count is that of a bookkeeper who
// sees everything.
func TestLossIsWhatNeverCame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint16().Draw(t, "start")
		count := rapid.IntRange(1, 3*sequenceWindow).Draw(t, "count")
		drops := rapid.SliceOfNDistinct(rapid.IntRange(0, count-1), 0, min(count-1, 200), rapid.ID[int]).Draw(t, "drops")
		swaps := rapid.SliceOfN(rapid.IntRange(0, count-1), 0, 50).Draw(t, "swaps")
		doubles := rapid.SliceOfN(rapid.IntRange(0, count-1), 0, 20).Draw(t, "doubles")
		recovered := rapid.SliceOfN(rapid.IntRange(0, count-1), 0, 20).Draw(t, "recovered")

		var order []int
		for i := range count {
			if !slices.Contains(drops, i) {
				order = append(order, i)
			}
		}
		const reach = 40 // far less than the window
		for _, at := range swaps {
			if at+reach < len(order) {
				order[at], order[at+reach] = order[at+reach], order[at]
			}
		}
		var s sequence
		var twice uint64
		for _, i := range order {
			s.add(start+uint16(i), slices.Contains(recovered, i))
			if slices.Contains(doubles, i) {
				s.add(start+uint16(i), false)
				twice++
			}
		}
		first, last := slices.Min(order), slices.Max(order)
		got := s.total()
		if want := uint64(last - first + 1); got.Expected != want {
			t.Fatalf("expected %d packets, want %d", got.Expected, want)
		}
		if want := uint64(len(order)); got.Received != want || got.Lost() != uint64(last-first+1)-want {
			t.Fatalf("received %d, lost %d; want %d received", got.Received, got.Lost(), want)
		}
		if got.Duplicates != twice || got.Jumps != 0 || got.TooLate != 0 {
			t.Fatalf("%+v, want %d duplicates and nothing else odd", got, twice)
		}
	})
}

func TestLossByExample(t *testing.T) {
	type packet struct {
		number uint16
		rtx    bool
	}
	for _, test := range []struct {
		name string
		come []packet
		want Loss
	}{
		{"nothing", nil, Loss{}},
		{"one is missing over the wrap", []packet{{65534, false}, {65535, false}, {1, false}}, Loss{Expected: 4, Received: 3}},
		{"and comes again", []packet{{65535, false}, {1, false}, {0, true}}, Loss{Expected: 3, Received: 3, Recovered: 1}},
		{"the first was overtaken", []packet{{5, false}, {4, false}}, Loss{Expected: 2, Received: 2, Late: 1}},
		{"a recovered one comes after all", []packet{{4, false}, {6, false}, {5, true}, {5, false}}, Loss{Expected: 3, Received: 3, Recovered: 1, Duplicates: 1}},
		{"too late", []packet{{10, false}, {10 + sequenceWindow + 1, false}, {11, false}}, Loss{Expected: sequenceWindow + 2, Received: 2, TooLate: 1}},
		{"a new stream", []packet{{10, false}, {12, false}, {30000, false}, {30001, false}}, Loss{Expected: 5, Received: 4, Jumps: 1}},
	} {
		var s sequence
		for _, p := range test.come {
			s.add(p.number, p.rtx)
		}
		if got := s.total(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
