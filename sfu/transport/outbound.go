package transport

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

var errPacketSize = errors.New("the packet is longer than its space")

// outbound encrypts what is sent.
type outbound struct {
	mu      sync.Mutex    // guards the fields below
	media   sealer        // nil until there are keys
	context *srtp.Context // of RTCP; nil until there are keys
	closed  bool
	control rtcp.Header // as SRTCP reads it
}

func (o *outbound) open(keys srtp.Config) error {
	context, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if err != nil {
		return fmt.Errorf("open outgoing SRTP: %w", err)
	}
	media, err := newSealer(keys, context)
	if err != nil {
		return fmt.Errorf("open outgoing SRTP: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.context, o.media = context, media
	return nil
}

func (o *outbound) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// Batch takes packets that are written in its own space. egress.Batch is one.
type Batch interface {
	// Space is room for one packet of so many bytes, until the next call.
	Space(bytes int) []byte
	// Put sends the first n bytes of the last Space, which belong to a frame of a picture, or to none.
	Put(n int, to egress.Address, frame egress.Frame) error
}

// Writer sends what one connection gets, through a batch. It is used by the goroutine that uses the batch. Of one SSRC only one
// Writer may send.
type Writer struct {
	conn    *Conn
	batch   Batch
	picture bool // it sends one
	repeats repeats
}

// Writer returns a Writer of the connection. A client with a slow TCP connection is sent less of a picture.
func (c *Conn) Writer(batch Batch, picture bool) *Writer {
	return &Writer{conn: c, batch: batch, picture: picture}
}

func (w *Writer) frameOf(ssrc, timestamp uint32) egress.Frame {
	if !w.picture {
		return 0
	}
	return egress.FrameOf(ssrc, timestamp)
}

// WriteRTP sends one packet and returns its size on the wire, without UDP and IP headers. It returns 0 and no error while the
// transport is not up, and net.ErrClosed after Close.
func (w *Writer) WriteRTP(header *rtp.Header, payload []byte) (int, error) {
	o := &w.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to := w.conn.selected.Load()
	switch {
	case o.closed:
		return 0, net.ErrClosed
	case o.media == nil || to == nil:
		return 0, nil
	}
	space := w.batch.Space(header.MarshalSize() + len(payload) + int(header.PaddingSize) + sealOverhead)
	n, err := o.media.seal(space, header, payload)
	if err != nil {
		return 0, err
	}
	w.repeats.put(header.SSRC, header.SequenceNumber, space[:n])
	return n, w.batch.Put(n, *to, w.frameOf(header.SSRC, header.Timestamp))
}

// maxControl bounds a datagram of RTCP before encryption. Every path carries it; a longer one might be cut into fragments, of
// which networks lose more.
const maxControl = 1200

// controlOverhead is what SRTCP adds at most: tag and index.
const controlOverhead = 20

// WriteRTCP sends compound packets, as few as there can be, as WriteRTP does. No packet may be longer than maxControl by itself.
func (w *Writer) WriteRTCP(packets []rtcp.Packet) error {
	for len(packets) > 0 {
		n, size := 1, packets[0].MarshalSize()
		for ; n < len(packets); n++ {
			if size += packets[n].MarshalSize(); size > maxControl {
				break
			}
		}
		if err := w.writeCompound(packets[:n]); err != nil {
			return err
		}
		packets = packets[n:]
	}
	return nil
}

func (w *Writer) writeCompound(packets []rtcp.Packet) error {
	b, err := rtcp.Marshal(packets)
	if err != nil {
		return fmt.Errorf("write RTCP: %w", err)
	}
	o := &w.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to := w.conn.selected.Load()
	switch {
	case o.closed:
		return net.ErrClosed
	case o.context == nil || to == nil:
		return nil
	}
	space := w.batch.Space(len(b) + controlOverhead)
	sealed, err := o.context.EncryptRTCP(space[:0], b, &o.control)
	if err != nil {
		return fmt.Errorf("seal RTCP: %w", err)
	}
	if len(sealed) > len(space) {
		return errPacketSize
	}
	return w.batch.Put(len(sealed), *to, 0)
}

// WriteRTCP is that of Writer for any goroutine: it sends at once.
func (c *Conn) WriteRTCP(packets []rtcp.Packet) error {
	return c.Writer(&direct{socket: c.transport.socket}, false).WriteRTCP(packets)
}

// direct is a Batch of RTCP that gathers nothing.
type direct struct {
	socket Socket
	space  [maxControl + controlOverhead]byte
}

// Space is part of Batch.
func (d *direct) Space(bytes int) []byte { return d.space[:min(bytes, len(d.space))] }

// Put is part of Batch.
func (d *direct) Put(n int, to egress.Address, _ egress.Frame) error {
	_, err := d.socket.Write(d.space[:n], to)
	return err
}
