package transport

import (
	"fmt"
	"net"
	"sync"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// sealBytes is the room for one packet to be sent: a received one with its header rewritten, and what SRTP adds.
const sealBytes = 2048

// outbound encrypts what is sent.
type outbound struct {
	mu      sync.Mutex    // guards the fields below
	context *srtp.Context // nil until there are keys
	closed  bool
	header  rtp.Header // as SRTP reads it
	control rtcp.Header
}

// sealing is the space in which packets are sealed, one at a time.
var sealing = sync.Pool{New: func() any { return new([sealBytes]byte) }} //nolint:gochecknoglobals // a pool of buffers has no state

func (o *outbound) open(keys srtp.Config) error {
	context, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if err != nil {
		return fmt.Errorf("open outgoing SRTP: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.context = context
	return nil
}

func (o *outbound) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// WriteRTP sends one packet and returns its size on the wire, without UDP and IP headers. It returns 0 and no error while the
// transport is not up, and net.ErrClosed after Close.
func (c *Conn) WriteRTP(header *rtp.Header, payload []byte) (int, error) {
	space, ok := sealing.Get().(*[sealBytes]byte)
	if !ok {
		space = new([sealBytes]byte)
	}
	defer sealing.Put(space)
	n, err := header.MarshalTo(space[:])
	if err != nil {
		return 0, fmt.Errorf("write RTP header: %w", err)
	}
	n += copy(space[n:], payload)
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to := c.selected.Load()
	switch {
	case o.closed:
		return 0, net.ErrClosed
	case o.context == nil || to == nil:
		return 0, nil
	}
	sealed, err := o.context.EncryptRTP(space[:], space[:n], &o.header)
	if err != nil {
		return 0, fmt.Errorf("seal RTP: %w", err)
	}
	return c.transport.socket.WriteToAddrPort(sealed, *to)
}

// maxControl bounds a datagram of RTCP before encryption. Every path carries it; a longer one might be cut into fragments, of
// which networks lose more.
const maxControl = 1200

// WriteRTCP sends compound packets, as few as there can be, as WriteRTP does. No packet may be longer than maxControl by itself.
func (c *Conn) WriteRTCP(packets []rtcp.Packet) error {
	for len(packets) > 0 {
		n, size := 1, packets[0].MarshalSize()
		for ; n < len(packets); n++ {
			if size += packets[n].MarshalSize(); size > maxControl {
				break
			}
		}
		if err := c.writeCompound(packets[:n]); err != nil {
			return err
		}
		packets = packets[n:]
	}
	return nil
}

func (c *Conn) writeCompound(packets []rtcp.Packet) error {
	b, err := rtcp.Marshal(packets)
	if err != nil {
		return fmt.Errorf("write RTCP: %w", err)
	}
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to := c.selected.Load()
	switch {
	case o.closed:
		return net.ErrClosed
	case o.context == nil || to == nil:
		return nil
	}
	sealed, err := o.context.EncryptRTCP(nil, b, &o.control)
	if err != nil {
		return fmt.Errorf("seal RTCP: %w", err)
	}
	_, err = c.transport.socket.WriteToAddrPort(sealed, *to)
	return err
}
