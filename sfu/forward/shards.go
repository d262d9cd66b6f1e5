package forward

import (
	"sync"
)

// shardSlots is from how many slots on several goroutines forward a frame, or a packet of sound.
const shardSlots = 64

// shards are parts of a layer's slots, one for each Batcher. Each part is forwarded by its own goroutine, which touches only the slots of that
// part, while the loop waits for all.
type shards struct {
	batchers []Batcher
	pool     *sync.Pool

	// slots already show the layer, so that writing to them changes nothing of the room.
	slots  [][]*Slot
	copies [][]*Packet
	// sound is a packet of sound as a frame.
	sound [1]*Packet
	// faults are the panics of the parts.
	faults []any
}

func newShards(batchers []Batcher, pool *sync.Pool) shards {
	n := len(batchers)
	return shards{batchers: batchers, pool: pool, slots: make([][]*Slot, n), copies: make([][]*Packet, n), faults: make([]any, n)}
}

func (h *shards) forward(l *Layer, packets []*Packet) {
	for i := range h.slots {
		h.slots[i], h.faults[i] = h.slots[i][:0], nil
	}
	for _, s := range l.slots {
		// Sound is never paced.
		paced := l.cfg.Kind == KindVideo && (s.sub.budget != 0 || len(s.sub.pace.queue) > 0)
		if s.ready && s.current == l && !paced {
			h.slots[s.cfg.Shard] = append(h.slots[s.cfg.Shard], s)
			continue
		}
		for _, p := range packets {
			if paced {
				s.forwardPaced(p)
			} else {
				s.forward(p)
			}
		}
	}
	defer h.finish()
	var group sync.WaitGroup
	defer group.Wait()
	for i := 1; i < len(h.slots); i++ {
		if len(h.slots[i]) == 0 {
			continue
		}
		h.copies[i] = h.copyPackets(h.copies[i][:0], packets)
		group.Go(func() {
			defer func() { h.faults[i] = recover() }()
			h.forwardShard(i, h.copies[i])
		})
	}
	h.forwardShard(0, packets)
}

func (h *shards) forwardShard(i int, packets []*Packet) {
	for _, s := range h.slots[i] {
		for _, p := range packets {
			in := p.incoming()
			s.write(p, &in)
		}
	}
	batcher := h.batchers[i]
	batcher.End()
	batcher.Begin()
}

// copyPackets makes copies whose payloads a part may patch. A recycled packet keeps what is not set here.
func (h *shards) copyPackets(into, packets []*Packet) []*Packet {
	for _, p := range packets {
		c := getPacket(h.pool)
		copy(c.buffer[:p.length], p.buffer[:p.length])
		c.length, c.layer, c.arrived, c.header, c.picture, c.sequence, c.redundancy, c.padding = p.length, p.layer, p.arrived, p.header, p.picture, p.sequence, p.redundancy, p.padding
		if c.described = p.described; c.described {
			c.frame = p.frame
		} else {
			c.frame.Number = 0
		}
		into = append(into, c)
	}
	return into
}

// finish gives the copies back, and panics again if a part panicked, so that the loop can deal with it.
func (h *shards) finish() {
	for i, copies := range h.copies {
		for j, c := range copies {
			c.Release()
			copies[j] = nil
		}
		h.copies[i] = copies[:0]
	}
	for _, fault := range h.faults {
		if fault != nil {
			panic(fault) //nolint:forbidigo // it is passed on, to the goroutine that can deal with it
		}
	}
}
