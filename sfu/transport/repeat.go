package transport

import (
	"encoding/binary"
	"net"
)

// repeats keeps sealed packets, because sealing other bytes under a used number would use a nonce twice.
type repeats struct {
	ssrc uint32
	// count is a power of two, or 0 if nothing is kept.
	count  int
	sealed []sealedPacket
}

type sealedPacket struct {
	sequence uint16
	bytes    []byte
}

// Keep remembers so many packets of an SSRC, a power of two. Call it before the first.
func (w *Writer) Keep(ssrc uint32, packets int) { w.repeats = repeats{ssrc: ssrc, count: packets} }

// Repeat sends a kept packet again. It returns 0 if the packet is forgotten, and otherwise what WriteRTP returns.
func (w *Writer) Repeat(sequence uint16) (int, error) {
	sealed := w.repeats.get(sequence)
	if sealed == nil {
		return 0, nil
	}
	o := &w.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to := w.conn.selected.Load()
	if o.closed || to == nil {
		return 0, net.ErrClosed
	}
	space := w.batch.Space(len(sealed))
	if len(space) < len(sealed) {
		return 0, errPacketSize
	}
	timestamp := binary.BigEndian.Uint32(sealed[4:])
	return len(sealed), w.batch.Put(copy(space, sealed), *to, w.frameOf(w.repeats.ssrc, timestamp))
}

func (r *repeats) put(ssrc uint32, sequence uint16, sealed []byte) {
	if r.count == 0 || ssrc != r.ssrc {
		return
	}
	if r.sealed == nil {
		r.sealed = make([]sealedPacket, r.count)
	}
	p := &r.sealed[int(sequence)&(r.count-1)]
	p.sequence, p.bytes = sequence, append(p.bytes[:0], sealed...)
}

func (r *repeats) get(sequence uint16) []byte {
	if r.sealed == nil {
		return nil
	}
	p := &r.sealed[int(sequence)&(r.count-1)]
	if p.sequence != sequence {
		return nil
	}
	return p.bytes
}
