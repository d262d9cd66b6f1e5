package parse

import (
	"bytes"
	"testing"
)

// FuzzRED: any bytes are read within their bounds, and what is unpacked is what a plain reading of RFC 2198 gives.
func FuzzRED(f *testing.F) {
	f.Add(redPayload(111, []byte("two"), []byte("one")), uint8(111))
	f.Add(redPayload(111, []byte("three"), []byte("one"), nil), uint8(109))
	f.Add([]byte{0x80 | 111, 0, 3, 255, 111}, uint8(111))
	f.Add([]byte{0x80 | 111, 0, 0}, uint8(111))
	f.Fuzz(func(t *testing.T, payload []byte, to uint8) {
		r, ok := ReadRedundancy(payload, 111)
		if !ok {
			return
		}
		newest := payload[r.Newest:]
		rest := bytes.Clone(payload)
		older := 0
		for range r.Blocks - 1 {
			older += (int(rest[2])<<8 | int(rest[3])) & 0x3FF
			rest = rest[4:]
		}
		if want := rest[1+older:]; !bytes.Equal(newest, want) {
			t.Fatalf("%x gives %x, want %x", payload, newest, want)
		}
		again := bytes.Clone(payload)
		r.SetPayloadTypes(again, to&0x7F)
		if got, ok := ReadRedundancy(again, to&0x7F); !ok || got != r || len(again) != len(payload) {
			t.Fatalf("with another type %x is read as %v, want %v", again, got, r)
		}
	})
}

// redPayload puts sound behind the sound before it, as RFC 2198 has it.
func redPayload(payloadType uint8, newest []byte, older ...[]byte) []byte {
	var headers, blocks []byte
	for i, b := range older {
		offset := 960 * (len(older) - i)
		headers = append(headers, 0x80|payloadType, byte(offset>>6), byte(offset<<2)|byte(len(b)>>8), byte(len(b)))
		blocks = append(blocks, b...)
	}
	return append(append(append(headers, payloadType), blocks...), newest...)
}
