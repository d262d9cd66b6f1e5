package forward

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSequenceTracker(t *testing.T) {
	var tr sequenceTracker
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
		got, ok := tr.extend(s.in)
		if ok != (s.want >= 0) || ok && got != 1<<16+uint32(s.want) {
			t.Fatalf("step %d: %d %v", i, int(got)-1<<16, ok)
		}
	}
}

// TestCacheHoldsWhatItSays: whatever is put in and however time goes, a packet
// in the cache is held exactly once, and no buffer is reused meanwhile.
func TestCacheHoldsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := newPacketPool()
		cache := packetCache{ring: make([]*Packet, 16)}
		live := make(map[*Packet]bool)
		sequence := uint32(1 << 16)
		now := epoch
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(1)
			sequence = uint32(int(sequence) + rapid.IntRange(-20, 25).Draw(t, "step"))
			p, ok := pool.Get().(*Packet)
			if !ok || live[p] && p.references > 0 {
				t.Fatal("the pool gave out a packet that is held")
			}
			p.references, p.sequence, p.arrived = 1, sequence, now
			live[p] = true
			if cache.put(p) && cache.get(sequence) != p {
				t.Fatal("put and not there")
			}
			p.Release()
			if rapid.IntRange(0, 9).Draw(t, "expire") == 0 {
				cache.expire(now.Add(-10))
			}
			held := 0
			for _, q := range cache.ring {
				if q == nil {
					continue
				}
				held++
				if q.references != 1 || q.sequence > cache.highest || q.sequence < cache.oldest {
					t.Fatal("held wrongly:", q.references, q.sequence, cache.oldest, cache.highest)
				}
			}
			for q := range live {
				if q.references > 0 {
					held--
				}
			}
			if held != 0 {
				t.Fatal("a packet leaked")
			}
		}
		cache.clear()
		for q := range live {
			if q.references != 0 {
				t.Fatal("a packet leaked")
			}
		}
	})
}
