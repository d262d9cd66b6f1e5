package forward

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

// packetCapacity is the room for one packet as it comes from SRTP: an Ethernet
// frame's worth.
const packetCapacity = 1500

// Packet is one pooled RTP packet. Get one with Room.GetPacket, read into
// Buffer, call SetLength, hand it to Layer.Push or back with Release.
type Packet struct {
	buffer [packetCapacity]byte
	length int

	pool *sync.Pool
	// references counts the holders: the loop while it forwards the packet,
	// and the retransmission cache. It needs no atomic: whoever fills the
	// packet owns it until Push, the room's loop from then on.
	references int32

	layer      *Layer
	arrived    time.Time
	header     header
	picture    picture
	frame      descriptor.Frame // if described
	described  bool             // the dependency descriptor says what the packet is of
	sequence   uint32           // the layer's extended sequence number, set by the loop
	redundancy redundancy
	padding    uint8 // with which it is forwarded, set by the loop
}

// Buffer is the space to read a packet into.
func (p *Packet) Buffer() []byte { return p.buffer[:] }

// SetLength says how many bytes of Buffer the packet takes.
func (p *Packet) SetLength(n int) { p.length = min(max(n, 0), packetCapacity) }

// Release gives up one reference; the last one returns the packet to the pool.
// A caller uses it for a packet that was not pushed.
func (p *Packet) Release() {
	p.references--
	if p.references == 0 && p.pool != nil {
		p.layer = nil
		p.pool.Put(p)
	}
}

func (p *Packet) hold() { p.references++ }

// payload is the packet's payload, without padding.
func (p *Packet) payload() []byte {
	return p.buffer[p.header.payloadStart:p.header.payloadEnd]
}

// parse reads what forwarding needs from the packet's bytes.
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

// newPacketPool makes the pool of one room. What the garbage collector takes
// from it is the only way in which it shrinks.
func newPacketPool() *sync.Pool {
	pool := &sync.Pool{}
	pool.New = func() any { return &Packet{pool: pool} }
	return pool
}
