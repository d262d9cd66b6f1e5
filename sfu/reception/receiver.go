package reception

import (
	"math"
	"slices"
	"time"

	"github.com/pion/rtcp"
)

const never = time.Duration(math.MaxInt64)

const reportInterval = time.Second

// maxReports is the greatest count that the five bits of a receiver report hold (RFC 3550 section 6.4.2).
const maxReports = 31

// Receiver watches the streams of one connection. It is not safe for concurrent use. All its durations count from begun.
type Receiver struct {
	ssrc     uint32
	begun    time.Time
	streams  []*stream
	path     path
	feedback feedback
	nackAt   time.Duration
	reportAt time.Duration
	pairs    []rtcp.NackPair
	losses   Losses
}

// New returns a Receiver whose RTCP comes from ssrc.
func New(ssrc uint32) *Receiver {
	return &Receiver{ssrc: ssrc, path: newPath(), feedback: feedback{due: never}, nackAt: never, reportAt: never}
}

// Losses are packets of all streams: those that were expected, and those of them that did not arrive before the report.
type Losses struct{ Expected, Lost uint64 }

func (l *Losses) add(more Losses) { l.Expected, l.Lost = l.Expected+more.Expected, l.Lost+more.Lost }

// TakeLosses returns the losses of the reports since the last call.
func (r *Receiver) TakeLosses() Losses {
	taken := r.losses
	r.losses = Losses{}
	return taken
}

// Repair says how a sender answers NACKs.
type Repair int

// The ways to repair.
const (
	// NoRepair means that the sender does not answer NACKs, so none are sent.
	NoRepair Repair = iota
	// RTX means that the sender retransmits on a separate SSRC (RFC 4588).
	RTX
	// Repeats means that the sender sends the original packet again.
	Repeats
)

// Add begins a stream, or replaces the stream with the same SSRC. clockRate is in ticks per second. The caller bounds the number of streams.
func (r *Receiver) Add(ssrc, clockRate uint32, repair Repair) {
	r.Remove(ssrc)
	r.streams = append(r.streams, &stream{ssrc: ssrc, clockRate: clockRate, repair: repair})
}

// Remove ends a stream. An unknown SSRC is ignored.
func (r *Receiver) Remove(ssrc uint32) {
	r.streams = slices.DeleteFunc(r.streams, func(s *stream) bool { return s.ssrc == ssrc })
}

// Received records a packet that is not an RTX retransmission. An unknown SSRC is ignored.
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

// Repaired records a retransmission (RFC 4588) by the original's SSRC and number, and reports whether that was missing.
func (r *Receiver) Repaired(ssrc uint32, sequence uint16, now time.Time) bool {
	s := r.stream(ssrc)
	return s != nil && s.repaired(sequence, r.since(now), &r.path)
}

// Transport records the transport-wide sequence number of any packet.
func (r *Receiver) Transport(sequence uint16, ssrc uint32, now time.Time) {
	r.feedback.arrived(sequence, ssrc, r.since(now))
}

// SenderReport records the NTP time of a sender report for the next receiver report.
func (r *Receiver) SenderReport(ssrc uint32, ntp uint64, now time.Time) {
	if s := r.stream(ssrc); s != nil {
		s.lastReport, s.lastReportAt = uint32(ntp>>16), r.since(now)
	}
}

// RoundTrip records a round-trip time that the caller has measured.
func (r *Receiver) RoundTrip(d time.Duration) { r.path.measured(d) }

// Due appends the packets to send now, each up to 1,200 bytes; the caller owns them.
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

// Next returns the time at which to call Due, zero if nothing is pending.
func (r *Receiver) Next() time.Time {
	next := min(r.nackAt, r.reportAt, r.feedback.due)
	if next == never {
		return time.Time{}
	}
	return r.begun.Add(next)
}

// RFC 3550 section 6.4.
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
		block, interval := s.report(at)
		report.Reports = append(report.Reports, block)
		r.losses.add(interval)
	}
	r.reportAt = never
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
