package forward

// Stats are a room's counters since it began.
type Stats struct {
	PacketsIn        uint64 // packets pushed
	PacketsForwarded uint64 // packets written to slots, retransmissions not included
	Retransmitted    uint64
	RetransmitMisses uint64 // asked for by NACK and too old, or over the slot's retransmission rate
	KeyframeRequests uint64 // PLIs sent to publishers
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
