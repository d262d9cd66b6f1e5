package forward

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
