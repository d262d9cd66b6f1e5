package connection

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// reportOf marshals a report with Pion and reads it with ours.
func reportOf(t *testing.T, feedback *rtcp.TransportLayerCC) (bandwidth.Report, bool) {
	t.Helper()
	feedback.Header = rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: uint16(feedback.MarshalSize()/4 - 1)}
	b, err := feedback.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var r feedbackReader
	return r.read(b)
}

// TestFeedbackIsRead: a report with every kind of chunk and delta.
func TestFeedbackIsRead(t *testing.T) {
	small, large := uint16(rtcp.TypeTCCPacketReceivedSmallDelta), uint16(rtcp.TypeTCCPacketReceivedLargeDelta)
	got, ok := reportOf(t, &rtcp.TransportLayerCC{
		BaseSequenceNumber: 65534, PacketStatusCount: 12, ReferenceTime: 3,
		PacketChunks: []rtcp.PacketStatusChunk{
			&rtcp.RunLengthChunk{PacketStatusSymbol: small, RunLength: 2},
			&rtcp.StatusVectorChunk{SymbolSize: rtcp.TypeTCCSymbolSizeTwoBit, SymbolList: []uint16{0, large, small, 0, 0, large, 0}},
			&rtcp.StatusVectorChunk{SymbolSize: rtcp.TypeTCCSymbolSizeOneBit, SymbolList: []uint16{1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}, // three count
		},
		RecvDeltas: []*rtcp.RecvDelta{
			{Type: small, Delta: 250},
			{Type: small, Delta: 500},
			{Type: large, Delta: -1000},
			{Type: small, Delta: 750},
			{Type: large, Delta: 100_000},
			{Type: small, Delta: 0},
			{Type: small, Delta: 63_750},
		},
	})
	here := func(us int) bandwidth.Arrival {
		return bandwidth.Arrival{Received: true, Delta: time.Duration(us) * time.Microsecond}
	}
	lost := bandwidth.Arrival{}
	want := []bandwidth.Arrival{
		here(250), here(500), lost, here(-1000), here(750), lost, lost, here(100_000), lost, here(0), lost, here(63_750),
	}
	if !ok || got.Base != 65534 || got.Reference != 3 || !slices.Equal(got.Packets, want) {
		t.Fatalf("%v: %+v, want %+v", ok, got, want)
	}
}

// TestFeedbackOfAMovedBrowser: a browser counts on from the last number of the node that it left, and its first report to the next node
// spans everything from that node's first number to there. Chromium (PacketArrivalTimeMap) keeps up to 32,768 numbers.
func TestFeedbackOfAMovedBrowser(t *testing.T) {
	small := uint16(rtcp.TypeTCCPacketReceivedSmallDelta)
	for _, before := range []uint16{300, 4095, 4096, 5000, 30_000} {
		path := bandwidth.NewPath(0, func() {})
		for range 3 {
			path.Next(1200)
		}
		feedback := &rtcp.TransportLayerCC{
			PacketStatusCount: before, ReferenceTime: 3,
			PacketChunks: []rtcp.PacketStatusChunk{&rtcp.RunLengthChunk{PacketStatusSymbol: small, RunLength: 3}},
			RecvDeltas:   []*rtcp.RecvDelta{{Type: small}, {Type: small}, {Type: small}, {Type: small}},
		}
		const longest = 0x1FFF // of one chunk
		for missing := before - 4; missing > 0; missing -= min(missing, longest) {
			feedback.PacketChunks = append(feedback.PacketChunks, &rtcp.RunLengthChunk{RunLength: min(missing, longest)})
		}
		feedback.PacketChunks = append(feedback.PacketChunks, &rtcp.RunLengthChunk{PacketStatusSymbol: small, RunLength: 1})
		report, ok := reportOf(t, feedback)
		if !ok {
			t.Errorf("a report of %d numbers is refused", before)
			continue
		}
		path.Feedback(report)
		if next := path.Next(1200); next != before {
			t.Errorf("after a report of %d numbers the next packet has number %d: the browser takes it for one that it had from the former node", before, next)
		}
	}
}

// FuzzTransportFeedback: what a client sends as feedback harms nobody, and is read as Pion reads it.
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
	f.Add([]byte{0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0})
	var r feedbackReader
	f.Fuzz(func(t *testing.T, b []byte) {
		report, ok := r.read(b)
		var theirs rtcp.TransportLayerCC
		if err := theirs.Unmarshal(b); err == nil && ok {
			received := 0
			for _, p := range report.Packets {
				if p.Received {
					received++
				}
			}
			if len(report.Packets) > int(theirs.PacketStatusCount) || received > len(theirs.RecvDeltas) || report.Base != theirs.BaseSequenceNumber {
				t.Fatalf("%+v is read of %+v", report, theirs)
			}
		}
		if ok {
			bandwidth.NewPath(0, func() {}).Feedback(report)
		}
	})
}

// FuzzFeedback lets a client's RTCP come as it may.
func FuzzFeedback(f *testing.F) {
	const ssrc = 7
	for _, packets := range [][]rtcp.Packet{
		{&rtcp.TransportLayerNack{MediaSSRC: ssrc, Nacks: []rtcp.NackPair{{PacketID: 65535, LostPackets: 0xffff}}}},
		{&rtcp.PictureLossIndication{MediaSSRC: ssrc}, &rtcp.FullIntraRequest{MediaSSRC: ssrc, FIR: []rtcp.FIREntry{{SSRC: ssrc}}}},
		{&rtcp.ReceiverReport{SSRC: 1, Reports: []rtcp.ReceptionReport{{SSRC: ssrc}}}},
	} {
		text, err := rtcp.Marshal(packets)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	c := open(f, read(f, publishing))
	c.bySSRC[ssrc] = &slot{Slot: c.cfg.Room.AddSlot(forward.SlotConfig{Peer: "bob", Mid: "0", Kind: forward.KindVideo, SSRC: ssrc}), ssrc: ssrc}
	f.Fuzz(func(_ *testing.T, text []byte) { c.RTCP(text, time.Now()) })
}
