package reception

import (
	"encoding/binary"
	"math"

	"github.com/pion/rtcp"
)

// Packet statuses and chunk forms (section 3.1 of the draft).
const (
	missing    = 0
	smallDelta = 1 // one byte
	largeDelta = 2 // two, signed

	oneBitVector = 1 << 15
	twoBitVector = 3 << 14
	maxRun       = 1<<13 - 1
)

const (
	feedbackHeader = 20
	maxDeltas      = 800
)

type feedbackWriter struct {
	last    int64 // in ticks
	symbols [window]byte
	count   int
	deltas  [maxDeltas]byte
	size    int
}

func (w *feedbackWriter) add(arrival int64) bool {
	symbol := byte(missing)
	if arrival != none {
		delta := arrival - w.last
		switch {
		case delta >= 0 && delta <= math.MaxUint8 && w.size < maxDeltas:
			symbol = smallDelta
			w.deltas[w.size] = byte(delta)
		case delta >= math.MinInt16 && delta <= math.MaxInt16 && w.size+1 < maxDeltas:
			symbol = largeDelta
			binary.BigEndian.PutUint16(w.deltas[w.size:], uint16(delta))
		default:
			return false
		}
		w.last = arrival
	}
	w.size += int(symbol)
	w.symbols[w.count] = symbol
	w.count++
	return true
}

func (w *feedbackWriter) packet(sender, source uint32, base uint16, reference uint32, count uint8) *rtcp.RawPacket {
	p := make([]byte, feedbackHeader, feedbackHeader+w.size+2*(w.count/7+1)+3)
	binary.BigEndian.PutUint32(p[4:], sender)
	binary.BigEndian.PutUint32(p[8:], source)
	binary.BigEndian.PutUint16(p[12:], base)
	binary.BigEndian.PutUint16(p[14:], uint16(w.count))
	binary.BigEndian.PutUint32(p[16:], reference<<8|uint32(count))
	for left := w.symbols[:w.count]; len(left) > 0; {
		chunk, n := nextChunk(left)
		p = binary.BigEndian.AppendUint16(p, chunk)
		left = left[n:]
	}
	p = append(p, w.deltas[:w.size]...)
	p[0], p[1] = 2<<6|rtcp.FormatTCC, byte(rtcp.TypeTransportSpecificFeedback)
	if padding := -len(p) & 3; padding > 0 {
		p[0] |= 1 << 5
		p = append(p, make([]byte, padding)...)
		p[len(p)-1] = byte(padding)
	}
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)/4-1))
	raw := rtcp.RawPacket(p)
	return &raw
}

func nextChunk(symbols []byte) (chunk uint16, n int) {
	run := 1
	for run < min(len(symbols), maxRun) && symbols[run] == symbols[0] {
		run++
	}
	ones := 0
	for ones < min(len(symbols), 14) && symbols[ones] != largeDelta {
		chunk |= uint16(symbols[ones]) << (13 - ones)
		ones++
	}
	switch {
	case run >= 14 || run == len(symbols):
		return uint16(symbols[0])<<13 | uint16(run), run
	case ones == min(len(symbols), 14):
		return oneBitVector | chunk, ones
	case run >= 7:
		return uint16(symbols[0])<<13 | uint16(run), run
	}
	chunk = twoBitVector
	for n < min(len(symbols), 7) {
		chunk |= uint16(symbols[n]) << (12 - 2*n)
		n++
	}
	return chunk, n
}
