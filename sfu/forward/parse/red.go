package parse

// Redundancy locates the blocks of an RFC 2198 payload. The newest one begins at Newest.
type Redundancy struct {
	Blocks int // 0: the payload is not redundant
	Newest int
}

// A block header has four bytes. That of the newest block, the last header, has one, whose first bit is clear.
const blockHeaderBytes = 4

// ReadRedundancy reads where the blocks are. It is false unless every block has the payload type, and all end within the payload.
func ReadRedundancy(b []byte, payloadType uint8) (r Redundancy, ok bool) {
	at, older := 0, 0
	for r.Blocks = 1; ; r.Blocks++ {
		if len(b) <= at || b[at]&0x7F != payloadType {
			return Redundancy{}, false
		}
		if b[at]&0x80 == 0 {
			r.Newest = at + 1 + older
			return r, r.Newest <= len(b)
		}
		if len(b) < at+blockHeaderBytes {
			return Redundancy{}, false
		}
		older += int(b[at+2]&0x03)<<8 | int(b[at+3])
		at += blockHeaderBytes
	}
}

// SetPayloadTypes overwrites the payload type of every block in place.
func (r Redundancy) SetPayloadTypes(payload []byte, payloadType uint8) {
	for i := range r.Blocks {
		header := &payload[i*blockHeaderBytes]
		*header = *header&0x80 | payloadType
	}
}
