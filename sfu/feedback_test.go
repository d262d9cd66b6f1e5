package sfu

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
)

// TestReportOf reads a report with every kind of chunk and delta.
func TestReportOf(t *testing.T) {
	got := reportOf(&rtcp.TransportLayerCC{
		BaseSequenceNumber: 65534, PacketStatusCount: 7, ReferenceTime: 3,
		PacketChunks: []rtcp.PacketStatusChunk{
			&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 2},
			&rtcp.StatusVectorChunk{SymbolSize: 1, SymbolList: []uint16{0, 2, 1, 0, 0, 1, 1}}, // the last two are beyond the count
		},
		RecvDeltas: []*rtcp.RecvDelta{{Delta: 250}, {Delta: 500}, {Delta: -1000}, {Delta: 750}},
	})
	want := []bandwidth.Arrival{
		{Received: true, Delta: 250 * time.Microsecond},
		{Received: true, Delta: 500 * time.Microsecond},
		{},
		{Received: true, Delta: -time.Millisecond},
		{Received: true, Delta: 750 * time.Microsecond},
		{},
		{},
	}
	if got.Base != 65534 || got.Reference != 3 || len(got.Packets) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, packet := range got.Packets {
		if packet != want[i] {
			t.Errorf("packet %d: %+v, want %+v", i, packet, want[i])
		}
	}
}

// FuzzTransportFeedback: what a client sends as feedback harms nobody.
func FuzzTransportFeedback(f *testing.F) {
	seed, err := (&rtcp.TransportLayerCC{
		Header:     rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 5},
		SenderSSRC: 1, MediaSSRC: 2, PacketStatusCount: 2,
		PacketChunks: []rtcp.PacketStatusChunk{&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 2}},
		RecvDeltas:   []*rtcp.RecvDelta{{Type: rtcp.TypeTCCPacketReceivedSmallDelta, Delta: 250}, {Type: rtcp.TypeTCCPacketReceivedSmallDelta, Delta: 250}},
	}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		packets, err := rtcp.Unmarshal(b)
		if err != nil {
			return
		}
		for _, packet := range packets {
			if feedback, ok := packet.(*rtcp.TransportLayerCC); ok {
				report := reportOf(feedback)
				if len(report.Packets) > int(feedback.PacketStatusCount) {
					t.Fatalf("%d packets of %d", len(report.Packets), feedback.PacketStatusCount)
				}
				bandwidth.NewPath(func(uint64) {}).Feedback(report)
			}
		}
	})
}
