package forward

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"
)

const packetCapacity = 1500

// Packet is a pooled RTP packet. Take one from Room.GetPacket, read into its Buffer, call SetLength, and then Layer.Push or Release.
type Packet struct {
	buffer [packetCapacity]byte
	length int

	pool *sync.Pool
	// The reader's goroutine owns a packet until Push, and then the loop, so that the count needs no atomics.
	references int32

	layer   *Layer
	arrived time.Time
	header  parse.Header
	picture parse.Picture
	frame   descriptor.Frame
	// described: the packet has a dependency descriptor, which filled frame.
	described bool
	// sequence is extended; the loop sets it.
	sequence   uint32
	redundancy parse.Redundancy
	// padding is set by the loop.
	padding uint8
}

// Buffer is to be read into.
func (p *Packet) Buffer() []byte { return p.buffer[:] }

// SetLength sets the bytes of Buffer in use.
func (p *Packet) SetLength(n int) { p.length = min(max(n, 0), packetCapacity) }

// Release gives up one reference. Callers release what they do not push.
func (p *Packet) Release() {
	p.references--
	if p.references == 0 && p.pool != nil {
		p.layer = nil
		p.pool.Put(p)
	}
}

func (p *Packet) retain() { p.references++ }

func (p *Packet) parse(c parse.Codec, ids *parse.ExtensionIDs, descriptors *descriptor.Reader) error {
	h, err := parse.ReadHeader(p.buffer[:p.length], ids)
	if err != nil {
		return err
	}
	p.header = h
	p.picture, p.described = parse.ReadPicture(c, p.buffer[:p.length], &p.header, descriptors, &p.frame)
	return nil
}

func (p *Packet) empty() bool { return p.header.PayloadStart == p.header.PayloadEnd }

func (p *Packet) payload() []byte {
	return p.buffer[p.header.PayloadStart:p.header.PayloadEnd]
}

// payloadFor returns the payload and its type for a receiver. Redundant blocks are left out if the receiver did not negotiate them.
func (p *Packet) payloadFor(to renumber.PayloadTypes) (payload []byte, payloadType uint8) {
	payload = p.payload()
	switch {
	case p.redundancy.Blocks == 0:
		return payload, to.Media
	case to.RED == 0:
		return payload[p.redundancy.Newest:], to.Media
	}
	p.redundancy.SetPayloadTypes(payload, to.Media)
	return payload, to.RED
}

func (p *Packet) incoming() renumber.Incoming {
	return renumber.Incoming{
		Sequence:  p.sequence,
		Timestamp: p.header.Timestamp,
		PictureID: p.picture.PictureID,
		TL0:       p.picture.TL0,
		Frame:     p.frame.Number,
		Empty:     p.empty(),
		Gapless:   p.layer.codec == parse.VP8,
	}
}

func newPacketPool() *sync.Pool {
	pool := &sync.Pool{}
	pool.New = func() any { return &Packet{pool: pool} }
	return pool
}

func getPacket(pool *sync.Pool) *Packet {
	p, ok := pool.Get().(*Packet)
	if !ok {
		p = &Packet{pool: pool}
	}
	p.references = 1
	p.length, p.padding = 0, 0
	return p
}
