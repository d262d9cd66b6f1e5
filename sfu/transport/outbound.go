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

type outbound struct {
	mu sync.Mutex // guards the fields below
	// media is nil before the keys are known.
	media sealer
	// context encrypts RTCP. It is nil before the keys are known.
	context *srtp.Context
	closed  bool
	control rtcp.Header

	// Every used SRTCP index lies above controlFirst, and none above controlHighest. None above controlLimit may be used,
	// unless that is 0: see Conn.Bound.
	controlFirst, controlHighest, controlLimit uint32
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

// Batch takes packets written into its own space.
type Batch interface {
	// Space returns room for one packet of so many bytes. It is good until the next call.
	Space(bytes int) []byte
	// Put sends the first n bytes of the last Space. Frame 0 is for a packet that belongs to no picture.
	Put(n int, to egress.Address, frame egress.Frame) error
}

// Writer sends through a batch, on the batch's goroutine. An SSRC must have only one Writer.
type Writer struct {
	conn    *Conn
	batch   Batch
	picture bool
	repeats repeats
}

// Writer returns a Writer of this connection. A slow TCP connection is sent fewer pictures.
func (c *Conn) Writer(batch Batch, picture bool) *Writer {
	return &Writer{conn: c, batch: batch, picture: picture}
}

func (w *Writer) frameOf(ssrc, timestamp uint32) egress.Frame {
	if !w.picture {
		return 0
	}
	return egress.FrameOf(ssrc, timestamp)
}

// WriteRTP returns the packet's size without UDP and IP headers. It returns 0 before the connection is up, and
// net.ErrClosed after Close.
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
		return 0, w.conn.sealing(err)
	}
	w.repeats.put(header.SSRC, header.SequenceNumber, space[:n])
	return n, w.batch.Put(n, *to, w.frameOf(header.SSRC, header.Timestamp))
}

// maxControl keeps RTCP datagrams from being fragmented.
const maxControl = 1200

const controlOverhead = 20

// WriteRTCP sends compound packets; each packet must fit maxControl.
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
	if err := o.countControl(b); err != nil {
		return w.conn.sealing(err)
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

// WriteRTCP sends compound packets. Any goroutine may call it.
func (c *Conn) WriteRTCP(packets []rtcp.Packet) error {
	return c.Writer(&direct{socket: c.transport.socket}, false).WriteRTCP(packets)
}

type direct struct {
	socket Socket
	space  [maxControl + controlOverhead]byte
}

func (d *direct) Space(bytes int) []byte { return d.space[:min(bytes, len(d.space))] }

func (d *direct) Put(n int, to egress.Address, _ egress.Frame) error {
	_, err := d.socket.Write(d.space[:n], to)
	return err
}
