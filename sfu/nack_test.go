package sfu

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pion/rtcp"
)

// TestALostPacketIsAskedForTenTimesAtMost: it may have been repaired meanwhile, which Pion's generator does not see.
func TestALostPacketIsAskedForTenTimesAtMost(t *testing.T) {
	s := newStage(t, "one")
	e, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 0)
	alice.skipped = 100
	alice.negotiate(e, nil)
	var asked, heard atomic.Int64
	go func() { // It ends with the connection.
		for {
			packets, _, err := alice.pc.GetSenders()[1].ReadRTCP()
			if err != nil {
				return
			}
			for _, packet := range packets {
				if nack, ok := packet.(*rtcp.TransportLayerNack); ok && slices.ContainsFunc(nack.Nacks, func(n rtcp.NackPair) bool {
					return slices.Contains(n.PacketList(), alice.skipped)
				}) {
					asked.Add(1)
				}
				if _, ok := packet.(*rtcp.ReceiverReport); ok && asked.Load() > 0 {
					heard.Add(1)
				}
			}
		}
	}()
	alice.goSend()
	eventually(t, "three reports, one in a second, after the first NACK", func() bool { return heard.Load() > 3 })
	if n := asked.Load(); n > maxNACKs {
		t.Errorf("a lost packet was asked for %d times, want at most %d", n, maxNACKs)
	}
}
