package forward

import (
	"time"
)

const (
	// Two seconds of 5 Mbit/s.
	videoCachePackets = 1024
	// 1.3 seconds of sound.
	audioCachePackets = 64
	cacheAge          = 1500 * time.Millisecond
)

type packetCache struct {
	// ring is indexed by the low bits of the extended sequence number; its length is a power of two.
	ring []*Packet
	// Nothing below oldest is held.
	oldest  uint32
	highest uint32
}

func newPacketCache(kind Kind) packetCache {
	if kind == KindVideo {
		return packetCache{ring: make([]*Packet, videoCachePackets)}
	}
	return packetCache{ring: make([]*Packet, audioCachePackets)}
}

// put keeps a packet and takes a reference to it. It returns false for a duplicate, and for a packet that is older than the ring.
func (c *packetCache) put(p *Packet) bool {
	size := uint32(len(c.ring))
	switch {
	case c.highest == 0:
		c.highest, c.oldest = p.sequence, p.sequence
	case p.sequence > c.highest:
		c.highest = p.sequence
	case c.highest-p.sequence >= size:
		return false
	}
	place := &c.ring[p.sequence&(size-1)]
	if *place != nil {
		if (*place).sequence == p.sequence {
			return false
		}
		(*place).Release()
	}
	p.retain()
	*place = p
	c.oldest = min(c.oldest, p.sequence)
	for ; c.highest-c.oldest >= size; c.oldest++ {
		c.drop(c.oldest)
	}
	return true
}

func (c *packetCache) drop(sequence uint32) {
	place := &c.ring[sequence&uint32(len(c.ring)-1)]
	if *place != nil && (*place).sequence == sequence {
		(*place).Release()
		*place = nil
	}
}

// get returns nil if the packet is not held. The caller gets no reference.
func (c *packetCache) get(sequence uint32) *Packet {
	p := c.ring[sequence&uint32(len(c.ring)-1)]
	if p == nil || p.sequence != sequence {
		return nil
	}
	return p
}

func (c *packetCache) expire(limit time.Time) {
	for ; c.highest != 0 && c.oldest <= c.highest; c.oldest++ {
		if p := c.get(c.oldest); p != nil && !p.arrived.Before(limit) {
			return
		}
		c.drop(c.oldest)
	}
}

func (c *packetCache) clear() {
	for i, p := range c.ring {
		if p != nil {
			p.Release()
			c.ring[i] = nil
		}
	}
	c.oldest, c.highest = 0, 0
}
