package forward

// packetCapacity is the room for one packet as it comes from SRTP: an Ethernet
// frame's worth, and Pion's own receive buffers are no larger.
const packetCapacity = 1500

// Packet is one pooled RTP packet. Get one with Room.GetPacket, read into
// Buffer, call SetLength, hand it to Layer.Push or back with Release.
type Packet struct {
	buffer [packetCapacity]byte
	length int
}

// Buffer is the space to read a packet into.
func (p *Packet) Buffer() []byte { return p.buffer[:] }

// SetLength says how many bytes of Buffer the packet takes.
func (p *Packet) SetLength(n int) { p.length = min(max(n, 0), packetCapacity) }

// Release returns a packet that was not pushed.
func (p *Packet) Release() {}
