package forward

import "sync/atomic"

// Stats are a room's counters since it began.
type Stats struct {
	PacketsIn        uint64 // packets pushed
	PacketsForwarded uint64 // packets written to slots, retransmissions not included
	Retransmitted    uint64
	RetransmitMisses uint64 // asked for by NACK and too old, or over the slot's retransmission rate
	KeyframeRequests uint64 // PLIs sent to publishers
	ProbePackets     uint64 // padding written to find out what a path carries
	EgressPackets    uint64 // all RTP packets written
	EgressBytes      uint64 // their bytes as the writers reported them
	Drops            Drops
}

// Drops counts the packets that should have been forwarded and were not. What
// nobody is shown, padding, duplicates and packets from before a switch are no drops.
type Drops struct {
	QueueFull uint64 // the loop could not keep up; one for each incoming packet
	Write     uint64 // the writer refused, other than because its transport is closed
	Malformed uint64 // not RTP
}

// Total is the sum over all reasons.
func (d Drops) Total() uint64 { return d.QueueFull + d.Write + d.Malformed }

// counters are Stats as they are written, by several goroutines.
type counters struct {
	packetsIn, retransmitted, retransmitMisses, keyframeRequests, probes atomic.Uint64
	queueFull, writeErrors, malformed                                    atomic.Uint64
	shards                                                               []shardCounters
}

// shardCounters are what one shard counts for each packet that it writes.
type shardCounters struct {
	forwarded, egressPackets, egressBytes atomic.Uint64
	_                                     [40]byte // Two cores that count in one line of the cache wait for each other.
}

// Stats reads the room's counters. It may be called at any time.
func (r *Room) Stats() Stats {
	c := &r.stats
	var forwarded, egressPackets, egressBytes uint64
	for i := range c.shards {
		shard := &c.shards[i]
		forwarded += shard.forwarded.Load()
		egressPackets += shard.egressPackets.Load()
		egressBytes += shard.egressBytes.Load()
	}
	return Stats{
		PacketsIn:        c.packetsIn.Load(),
		PacketsForwarded: forwarded,
		Retransmitted:    c.retransmitted.Load(),
		RetransmitMisses: c.retransmitMisses.Load(),
		KeyframeRequests: c.keyframeRequests.Load(),
		ProbePackets:     c.probes.Load(),
		EgressPackets:    egressPackets,
		EgressBytes:      egressBytes,
		Drops: Drops{
			QueueFull: c.queueFull.Load(),
			Write:     c.writeErrors.Load(),
			Malformed: c.malformed.Load(),
		},
	}
}
