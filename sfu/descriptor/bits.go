package descriptor

import "math/bits"

// bitReader reads big-endian bits, past the end zeros.
type bitReader struct {
	bytes     []byte
	at        int
	exhausted bool
}

func (r *bitReader) read(n int) int {
	value := 0
	for range n {
		value <<= 1
		if r.at>>3 >= len(r.bytes) {
			r.exhausted = true
			continue
		}
		value |= int(r.bytes[r.at>>3]>>(7-r.at&7)) & 1
		r.at++
	}
	return value
}

func (r *bitReader) flag() bool { return r.read(1) == 1 }

// below reads ns(n) (AV1 specification, section 4.10.7).
func (r *bitReader) below(n int) int {
	width := bits.Len(uint(n))
	short := 1<<width - n
	value := r.read(width - 1)
	if value < short {
		return value
	}
	return value<<1 - short + r.read(1)
}
