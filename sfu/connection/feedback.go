package connection

import (
	"encoding/binary"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
)

const (
	// A browser that moved numbers on from its former node. Its first report is longer than this and spans the numbers of both nodes,
	// of which only the first and the last matter.
	maxFeedbackPackets = 4096
	// deltaUnit is the unit of arrival times.
	deltaUnit = 250 * time.Microsecond
)

// The statuses of a packet in a report.
const (
	statusMissing = iota
	statusSmallDelta
	statusLargeDelta
)

// feedbackReader reads transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
type feedbackReader struct {
	statuses []uint8
	report   bandwidth.Report
}

// read is false for anything but feedback. A report may lack arrival times at its end: its packets then end before the first without
// one. The report is valid until the next call.
func (r *feedbackReader) read(b []byte) (bandwidth.Report, bool) {
	const fixed = 20
	if len(b) < fixed {
		return bandwidth.Report{}, false
	}
	count := int(binary.BigEndian.Uint16(b[14:]))
	r.report = bandwidth.Report{
		Base: binary.BigEndian.Uint16(b[12:]), Span: uint16(count), Reference: binary.BigEndian.Uint32(b[16:]) >> 8, Packets: r.report.Packets[:0],
	}
	if count > maxFeedbackPackets {
		return r.report, true
	}
	deltas, ok := r.readStatuses(b[fixed:], count)
	if !ok {
		return bandwidth.Report{}, false
	}
	for _, status := range r.statuses {
		switch {
		case status == statusSmallDelta && len(deltas) >= 1:
			r.report.Packets = append(r.report.Packets, bandwidth.Arrival{Received: true, Delta: time.Duration(deltas[0]) * deltaUnit})
			deltas = deltas[1:]
		case status == statusLargeDelta && len(deltas) >= 2:
			delta := int16(binary.BigEndian.Uint16(deltas))
			r.report.Packets = append(r.report.Packets, bandwidth.Arrival{Received: true, Delta: time.Duration(delta) * deltaUnit})
			deltas = deltas[2:]
		case status == statusSmallDelta || status == statusLargeDelta:
			return r.report, true
		default:
			r.report.Packets = append(r.report.Packets, bandwidth.Arrival{})
		}
	}
	return r.report, true
}

// readStatuses returns what follows the chunks of statuses: the arrival times.
func (r *feedbackReader) readStatuses(b []byte, count int) ([]byte, bool) {
	r.statuses = r.statuses[:0]
	for len(r.statuses) < count {
		if len(b) < 2 {
			return nil, false
		}
		chunk := binary.BigEndian.Uint16(b)
		b = b[2:]
		left := count - len(r.statuses)
		switch {
		// A chunk is a run length, or 14 symbols of one bit, or 7 symbols of two bits.
		case chunk&0x8000 == 0:
			for range min(int(chunk&0x1FFF), left) {
				r.statuses = append(r.statuses, uint8(chunk>>13&3))
			}
			if chunk&0x1FFF == 0 {
				// A run of no packets would be read for ever.
				return nil, false
			}
		case chunk&0x4000 == 0:
			for i := range min(14, left) {
				r.statuses = append(r.statuses, uint8(chunk>>(13-i)&1))
			}
		default:
			for i := range min(7, left) {
				r.statuses = append(r.statuses, uint8(chunk>>(12-2*i)&3))
			}
		}
	}
	return b, true
}
