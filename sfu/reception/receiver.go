package reception

import (
	"math"
	"slices"
	"time"

	"github.com/pion/rtcp"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// reportInterval is the time between two receiver reports. Browsers send theirs at the same rate.
const reportInterval = time.Second

// maxReports is how many report blocks the five bits of a packet's count allow (RFC 3550 section 6.4.2).
const maxReports = 31

// Receiver watches the streams of one connection. All times are since begun.
type Receiver struct {
	ssrc     uint32 // of the sender of our RTCP
	begun    time.Time
	streams  []*stream // in the order of Add; a connection has few
	path     path
	feedback feedback
	nackAt   time.Duration
	reportAt time.Duration
	pairs    []rtcp.NackPair // scratch
}

// New returns a Receiver whose RTCP comes from ssrc.
func New(ssrc uint32) *Receiver {
	return &Receiver{ssrc: ssrc, path: newPath(), feedback: feedback{due: never}, nackAt: never, reportAt: never}
}

// Repair is how the sender of a stream answers NACKs.
type Repair int

// The ways to repair. With Repeats, a retransmission cannot be told from an original that is late.
const (
	NoRepair Repair = iota // not at all
	RTX                    // as RFC 4588 has it
	Repeats                // with the original once more
)

// Add begins a stream of clockRate ticks a second. A stream that is there is replaced. The caller bounds the number of streams:
// 64 cost nothing that is felt.
func (r *Receiver) Add(ssrc, clockRate uint32, repair Repair) {
	r.Remove(ssrc)
	r.streams = append(r.streams, &stream{ssrc: ssrc, clockRate: clockRate, repair: repair})
}

// Remove ends a stream. It may be unknown.
func (r *Receiver) Remove(ssrc uint32) {
	r.streams = slices.DeleteFunc(r.streams, func(s *stream) bool { return s.ssrc == ssrc })
}

// Received notes an original packet of a stream, be it media or padding. Packets of unknown streams are ignored.
func (r *Receiver) Received(ssrc uint32, sequence uint16, timestamp uint32, now time.Time) {
	s := r.stream(ssrc)
	if s == nil {
		return
	}
	at := r.since(now)
	if s.received(sequence, timestamp, at, &r.path) {
		r.nackAt = min(r.nackAt, at+r.path.wait)
	}
	if r.reportAt == never {
		r.reportAt = at + reportInterval
	}
}

// Repaired notes an original that came as a retransmission (RFC 4588), by the original's SSRC and number. It returns whether
// the packet was missing: false for the second copy, for what was given up, and for padding made of old packets.
// Retransmissions do not count as received in reports.
func (r *Receiver) Repaired(ssrc uint32, sequence uint16, now time.Time) bool {
	s := r.stream(ssrc)
	return s != nil && s.repaired(sequence, r.since(now), &r.path)
}

// Transport notes the transport-wide number of any packet, retransmissions and padding included. ssrc is the stream that it
// came with.
func (r *Receiver) Transport(sequence uint16, ssrc uint32, now time.Time) {
	r.feedback.arrived(sequence, ssrc, r.since(now))
}

// SenderReport notes the NTP time of a sender report that came, for LSR and DLSR.
func (r *Receiver) SenderReport(ssrc uint32, ntp uint64, now time.Time) {
	if s := r.stream(ssrc); s != nil {
		s.lastReport, s.lastReportAt = uint32(ntp>>16), r.since(now)
	}
}

// RoundTrip notes a round-trip time that was measured elsewhere. Without it the time between a NACK and its repair is used,
// which needs a retransmission that is told from an original.
func (r *Receiver) RoundTrip(d time.Duration) { r.path.measured(d) }

// Due appends to out what is to be sent now. No packet exceeds 1,200 bytes. The packets are the caller's. Called every 10 ms it
// names in one NACK what fell due meanwhile.
func (r *Receiver) Due(now time.Time, out []rtcp.Packet) []rtcp.Packet {
	at := r.since(now)
	if at >= r.reportAt {
		out = r.reports(at, out)
	}
	if at >= r.nackAt {
		out = r.nacks(at, out)
	}
	if at >= r.feedback.due {
		out = r.feedback.report(r.ssrc, at, out)
	}
	return out
}

// Next returns when Due has something to say; the zero time if nothing is pending.
func (r *Receiver) Next() time.Time {
	next := min(r.nackAt, r.reportAt, r.feedback.due)
	if next == never {
		return time.Time{}
	}
	return r.begun.Add(next)
}

// reports are about the streams of which something came since the last report, as RFC 3550 section 6.4 says.
func (r *Receiver) reports(at time.Duration, out []rtcp.Packet) []rtcp.Packet {
	var report *rtcp.ReceiverReport
	for _, s := range r.streams {
		if !s.heard {
			continue
		}
		if report == nil || len(report.Reports) == maxReports {
			report = &rtcp.ReceiverReport{SSRC: r.ssrc}
			out = append(out, report)
		}
		report.Reports = append(report.Reports, s.report(at))
	}
	r.reportAt = never // The next packet begins the interval anew.
	if report != nil {
		r.reportAt = at + reportInterval
	}
	return out
}

func (r *Receiver) nacks(at time.Duration, out []rtcp.Packet) []rtcp.Packet {
	r.nackAt = never
	for _, s := range r.streams {
		var next time.Duration
		r.pairs, next = s.ask(at, r.path.spacing, r.pairs[:0])
		if next != never {
			r.nackAt = min(r.nackAt, next)
		}
		if len(r.pairs) > 0 {
			out = append(out, &rtcp.TransportLayerNack{SenderSSRC: r.ssrc, MediaSSRC: s.ssrc, Nacks: slices.Clone(r.pairs)})
		}
	}
	return out
}

func (r *Receiver) stream(ssrc uint32) *stream {
	for _, s := range r.streams {
		if s.ssrc == ssrc {
			return s
		}
	}
	return nil
}

func (r *Receiver) since(now time.Time) time.Duration {
	if r.begun.IsZero() {
		r.begun = now
	}
	return now.Sub(r.begun)
}
