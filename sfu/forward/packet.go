package forward

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

const packetCapacity = 1500

// Packet is a pooled RTP packet: Room.GetPacket, read into Buffer, SetLength, then Layer.Push or Release.
type Packet struct {
	buffer [packetCapacity]byte
	length int

	pool *sync.Pool
	// One goroutine owns a packet until Push, then the loop: no atomics.
	references int32

	layer      *Layer
	arrived    time.Time
	header     header
	picture    picture
	frame      descriptor.Frame
	described  bool   // by a dependency descriptor
	sequence   uint32 // extended, set by the loop
	redundancy redundancy
	padding    uint8 // set by the loop
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

func (p *Packet) hold() { p.references++ }

func (p *Packet) payload() []byte {
	return p.buffer[p.header.payloadStart:p.header.payloadEnd]
}

func (p *Packet) parse(c codec, ids *extensionIDs, descriptors *descriptor.Reader) error {
	h, err := parseHeader(p.buffer[:p.length], ids)
	if err != nil {
		return err
	}
	p.header = h
	at := h.descriptor
	if p.described = at.length > 0 && descriptors.Read(p.buffer[at.at:at.at+at.length], &p.frame) == nil; p.described {
		p.picture = describedPicture(c, p.payload(), &p.frame)
		return nil
	}
	p.frame.Number = 0
	p.picture = parsePicture(c, p.payload())
	return nil
}

func newPacketPool() *sync.Pool {
	pool := &sync.Pool{}
	pool.New = func() any { return &Packet{pool: pool} }
	return pool
}
