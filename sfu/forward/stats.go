package forward

import (
	"sync/atomic"
)

// Stats are counts since the room began.
type Stats struct {
	PacketsIn        uint64
	PacketsForwarded uint64
	Retransmitted    uint64
	RetransmitMisses uint64
	// KeyframeRequests counts the PLIs that were sent.
	KeyframeRequests uint64
	ProbePackets     uint64
	EgressPackets    uint64
	EgressBytes      uint64
	Drops            Drops
}

// Plus adds up the counts of two rooms.
func (s Stats) Plus(t Stats) Stats {
	return Stats{
		PacketsIn: s.PacketsIn + t.PacketsIn, PacketsForwarded: s.PacketsForwarded + t.PacketsForwarded, Retransmitted: s.Retransmitted + t.Retransmitted,
		RetransmitMisses: s.RetransmitMisses + t.RetransmitMisses, KeyframeRequests: s.KeyframeRequests + t.KeyframeRequests, ProbePackets: s.ProbePackets + t.ProbePackets,
		EgressPackets: s.EgressPackets + t.EgressPackets, EgressBytes: s.EgressBytes + t.EgressBytes,
		Drops: Drops{
			QueueFull: s.Drops.QueueFull + t.Drops.QueueFull, Late: s.Drops.Late + t.Drops.Late, Write: s.Drops.Write + t.Drops.Write, Malformed: s.Drops.Malformed + t.Drops.Malformed,
		},
	}
}

// Drops counts packets that should have been forwarded.
type Drops struct {
	// QueueFull counts incoming packets.
	QueueFull uint64
	// Late counts incoming packets that were left out because the loop was behind.
	Late uint64
	// Write does not count writes to closed transports.
	Write uint64
	// Malformed also counts packets of payload types that their layer does not have.
	Malformed uint64
}

// Total adds up all reasons.
func (d Drops) Total() uint64 { return d.QueueFull + d.Late + d.Write + d.Malformed }

type counters struct {
	packetsIn, retransmitted, retransmitMisses, keyframeRequests, probes atomic.Uint64
	queueFull, late, writeErrors, malformed                              atomic.Uint64
	shards                                                               []shardCounters
}

type shardCounters struct {
	forwarded, egressPackets, egressBytes atomic.Uint64
	// The padding keeps two cores off one cache line.
	_ [40]byte
}

func newCounters(shards int) counters { return counters{shards: make([]shardCounters, max(shards, 1))} }

func (c *counters) read() Stats {
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
			Late:      c.late.Load(),
			Write:     c.writeErrors.Load(),
			Malformed: c.malformed.Load(),
		},
	}
}
