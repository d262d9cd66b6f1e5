package connection

import (
	"math/bits"
	"sync/atomic"

	"github.com/pion/rtcp"

	"github.com/holdfast-rtc/holdfast/sfu/reception"
)

// Tally counts the feedback of all connections of a node. It is counted for each RTCP packet, and never for a packet of media. It is safe
// for concurrent use.
type Tally struct {
	// NACKsReceived are packets that clients asked for again, and NACKsSent those that the node asked clients for.
	NACKsReceived, NACKsSent atomic.Uint64
	// PLIsReceived are keyframes that clients asked for.
	PLIsReceived atomic.Uint64
	// Expected are the packets that clients sent, as their numbers show, and Lost those of them that did not arrive at first.
	Expected, Lost atomic.Uint64
	// Failed are the connections that failed while their clients were in the room.
	Failed atomic.Uint64
}

// sent counts what a Tick sends to a client.
func (t *Tally) sent(due []rtcp.Packet, losses reception.Losses) {
	t.Expected.Add(losses.Expected)
	t.Lost.Add(losses.Lost)
	for _, packet := range due {
		if nack, ok := packet.(*rtcp.TransportLayerNack); ok {
			for _, pair := range nack.Nacks {
				t.NACKsSent.Add(uint64(1 + bits.OnesCount16(uint16(pair.LostPackets))))
			}
		}
	}
}
