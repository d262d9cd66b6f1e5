package forward

import (
	"testing"

	"pgregory.net/rapid"
)

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
