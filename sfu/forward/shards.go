package forward

import "sync"

// From so many slots on, several goroutines forward a frame.
const shardSlots = 64

// shards are parts of a room's slots, one for each Batcher. The loop waits; a part touches only its own slots.
type shards struct {
	steady [][]*Slot // they show the layer: writing changes nothing of the room
	copies [][]*Packet
	faults []any // panics
}

func newShards(n int) shards {
	return shards{steady: make([][]*Slot, n), copies: make([][]*Packet, n), faults: make([]any, n)}
}

func (r *Room) forwardInShards(l *Layer) {
	h := &r.shards
	for i := range h.steady {
		h.steady[i], h.faults[i] = h.steady[i][:0], nil
	}
	for _, s := range l.slots {
		if s.ready && s.current == l && s.sub.budget == 0 && len(s.sub.pace.queue) == 0 {
			h.steady[s.cfg.Shard] = append(h.steady[s.cfg.Shard], s)
			continue
		}
		for _, p := range l.held {
			s.pass(p)
		}
	}
	defer r.rejoin()
	var group sync.WaitGroup
	defer group.Wait()
	for i := 1; i < len(h.steady); i++ {
		if len(h.steady[i]) == 0 {
			continue
		}
		h.copies[i] = r.copies(h.copies[i][:0], l.held)
		group.Go(func() {
			defer func() { h.faults[i] = recover() }()
			r.forwardShard(i, h.copies[i])
		})
	}
	r.forwardShard(0, l.held)
}

func (r *Room) forwardShard(i int, packets []*Packet) {
	for _, s := range r.shards.steady[i] {
		for _, p := range packets {
			in := p.incoming()
			s.write(p, &in)
		}
	}
	batcher := r.cfg.Batchers[i]
	batcher.End()
	batcher.Begin()
}

// copies have payloads that the part may patch. A recycled packet keeps what is not set here.
func (r *Room) copies(into, packets []*Packet) []*Packet {
	for _, p := range packets {
		c := r.GetPacket()
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

// rejoin panics again for a part.
func (r *Room) rejoin() {
	for i, copies := range r.shards.copies {
		for j, c := range copies {
			c.Release()
			copies[j] = nil
		}
		r.shards.copies[i] = copies[:0]
	}
	for _, fault := range r.shards.faults {
		if fault != nil {
			panic(fault) //nolint:forbidigo // it is passed on, to the goroutine that can deal with it
		}
	}
}
