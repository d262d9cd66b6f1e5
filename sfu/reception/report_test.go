package reception

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
)

func reportsOf(t testing.TB, packets []rtcp.Packet) (reports []rtcp.ReceptionReport) {
	t.Helper()
	for _, packet := range overTheWire(t, packets) {
		if report, ok := packet.(*rtcp.ReceiverReport); ok {
			reports = append(reports, report.Reports...)
		}
	}
	return reports
}

// oneReport expects a single block.
func oneReport(t testing.TB, r *Receiver, now time.Time) rtcp.ReceptionReport {
	t.Helper()
	reports := reportsOf(t, r.Due(now, nil))
	if len(reports) != 1 {
		t.Fatalf("%d report blocks, want one: %v", len(reports), reports)
	}
	return reports[0]
}

func TestReportsCountWhatWasLost(t *testing.T) {
	r := New(1)
	r.Add(video, 90_000, RTX)
	for n := range 100 {
		if n%4 != 3 { // a quarter is lost; the last is lost, too, which nobody can know
			r.Received(video, uint16(65_500+n), 0, begin)
		}
	}
	r.Repaired(video, 65_503, begin)
	got := oneReport(t, r, begin.Add(time.Second))
	if got.TotalLost != 24 || got.FractionLost != 24*256/99 || got.LastSequenceNumber != 1<<16+62 {
		t.Errorf("got %+v, want 24 of 99 lost although one was retransmitted, up to %d", got, 1<<16+62)
	}
	for n := 99; n < 150; n++ {
		r.Received(video, uint16(65_500+n), 0, begin.Add(time.Second))
	}
	got = oneReport(t, r, begin.Add(2*time.Second))
	if got.TotalLost != 24 || got.FractionLost != 0 {
		t.Errorf("got %+v, want none lost since the last report", got)
	}
	for range 100 {
		r.Received(video, uint16((65_500+149)&0xffff), 0, begin.Add(2*time.Second))
	}
	got = oneReport(t, r, begin.Add(3*time.Second))
	if got.TotalLost != 0 || got.FractionLost != 0 {
		t.Errorf("got %+v, want none lost when more came than was sent", got)
	}
}

func TestReportsTellWhenTheSendersReportCame(t *testing.T) {
	r := New(1)
	r.Add(video, 90_000, RTX)
	r.Received(video, 1, 0, begin)
	r.SenderReport(video, 0x1111_2222_3333_4444, begin.Add(500*time.Millisecond))
	r.SenderReport(video+1, 1, begin)
	got := oneReport(t, r, begin.Add(time.Second))
	if got.LastSenderReport != 0x2222_3333 || got.Delay != 1<<15 {
		t.Errorf("got LSR %x and DLSR %d, want 22223333 and half a second, %d", got.LastSenderReport, got.Delay, 1<<15)
	}
}

// TestReportsTellTheJitter: packets that are late by turns differ by that time in each step, to which the filter converges.
func TestReportsTellTheJitter(t *testing.T) {
	r := New(1)
	r.Add(video, 48_000, NoRepair)
	for n := range 500 {
		at := time.Duration(n)*20*time.Millisecond + time.Duration(n%2)*5*time.Millisecond
		r.Received(video, uint16(n), uint32(n)*960+4_294_900_000, begin.Add(at)) // wraps
	}
	got := oneReport(t, r, begin.Add(10*time.Second))
	if want := uint32(240); got.Jitter+2 < want || got.Jitter > want+2 {
		t.Errorf("jitter of %d ticks, want 5 ms, %d", got.Jitter, want)
	}
}

func TestReportsAreOfStreamsThatAreHeard(t *testing.T) {
	r := New(1)
	for ssrc := range uint32(64) {
		r.Add(ssrc, 90_000, RTX)
	}
	r.Received(99, 1, 0, begin) // unknown
	if !r.Next().IsZero() {
		t.Error("a packet of an unknown stream makes something due")
	}
	for ssrc := range uint32(40) {
		r.Received(ssrc, 1, 0, begin)
	}
	r.Remove(0)
	if got := r.Next(); !got.Equal(begin.Add(reportInterval)) {
		t.Errorf("next at %v, want a report %v after the first packet", got, reportInterval)
	}
	packets := r.Due(begin.Add(reportInterval), nil)
	if n := len(reportsOf(t, packets)); n != 39 || len(packets) != 2 {
		t.Errorf("%d blocks in %d packets, want 39 in 2", n, len(packets))
	}
	r.Received(5, 2, 0, begin.Add(reportInterval))
	if got := oneReport(t, r, begin.Add(2*reportInterval)); got.SSRC != 5 {
		t.Errorf("report about %d, want the only stream that was heard since, 5", got.SSRC)
	}
	if packets := r.Due(begin.Add(3*reportInterval), nil); len(packets) != 0 || !r.Next().IsZero() {
		t.Errorf("%v is due, next at %v; want nothing when nothing came", packets, r.Next())
	}
}

// TestASenderThatBeginsAnew is followed from its second packet on, with counts of its own.
func TestASenderThatBeginsAnew(t *testing.T) {
	for _, jump := range []uint16{5000, 30_000, 65_536 - 2000} {
		r := New(1)
		r.Add(video, 90_000, RTX)
		for n := range uint16(10) {
			r.Received(video, n, 0, begin)
		}
		for n := range uint16(10) {
			r.Received(video, jump+n, 0, begin)
		}
		got := oneReport(t, r, begin.Add(time.Second))
		if got.LastSequenceNumber != uint32(jump)+9 || got.TotalLost != 0 {
			t.Errorf("jump to %d: got %+v, want up to %d and nothing lost", jump, got, jump+9)
		}
		if sequences := asked(r.Due(begin.Add(2*time.Second), nil)); len(sequences) > 0 {
			t.Errorf("jump to %d: asked for %v", jump, sequences)
		}
	}
}
