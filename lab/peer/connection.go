package peer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	random "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"
	"github.com/pion/srtp/v3"

	"github.com/holdfast-rtc/holdfast/sfu/reception"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const maxPacketBytes = 1500

// lostAfter is how long a connection without an answered check may come back by itself.
const lostAfter = 30 * time.Second

// connection has its own socket: a media node tells connections apart by address.
type connection struct {
	stack   *Stack
	offerID string
	session uint32 // of the o= line
	cname   string
	own     user
	socket  *net.UDPConn
	arrived func(arrival)
	reached func(step Step, hop int)
	payload func(audio bool, payload []byte)

	microphone *sendStream // nil when listening only, as is camera
	camera     []*sendStream

	remote *answer // set before the goroutines start
	state  atomic.Int32
	heard  atomic.Int64 // last answered check, Unix nanoseconds
	pipe   *pipe
	dtls   *dtls.Conn
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// The fields below belong to the reader's goroutine.
	checks   checks
	keys     atomic.Pointer[srtp.Context] // nil before DTLS is up
	plain    []byte
	receiver *reception.Receiver
	due      []rtcp.Packet
	reports  time.Time

	out outbound
}

const (
	connecting int32 = iota
	connected
	failed
)

// number counts the peer's connections from 1.
func newConnection(number string, send *sender, opts Options) (*connection, error) {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	c := &connection{
		stack: opts.Stack, offerID: number, session: random.Uint32(), cname: letters(8), own: user{ufrag: letters(4), password: letters(12)},
		socket: socket, receiver: reception.New(random.Uint32()), payload: opts.Payload,
	}
	c.out.socket = socket
	c.pipe = newPipe(&c.out)
	if send != nil {
		c.microphone = newSendStream(c, send.audio)
		for _, layer := range send.layers {
			c.camera = append(c.camera, newSendStream(c, layer.track))
		}
	}
	return c, nil
}

func (c *connection) sends() []*sendStream {
	if c.microphone == nil {
		return nil
	}
	return append([]*sendStream{c.microphone}, c.camera...)
}

// letters returns random ICE characters (RFC 8839 section 5.4), two a byte.
func letters(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func (c *connection) offer(opts Options) *wire.Offer {
	offer := &wire.Offer{ID: c.offerID, SDP: offerText(c, opts), Fresh: true, Senders: wire.List[wire.Sender]{}}
	if c.microphone != nil {
		offer.Senders = append(offer.Senders, wire.Sender{Mid: microphoneMid, Source: wire.SourceMicrophone})
	}
	if len(c.camera) > 0 {
		offer.Senders = append(offer.Senders, wire.Sender{Mid: cameraMid, Source: wire.SourceCamera})
	}
	return offer
}

// answer starts to connect. It calls arrived for each packet of a slot and reached for each step, from its own goroutines.
func (c *connection) answer(ctx context.Context, text string, arrived func(arrival), reached func(step Step, hop int)) error {
	remote, err := readAnswer(text)
	if err != nil || c.remote != nil {
		return err
	}
	c.remote, c.arrived, c.reached, c.checks.pairs = remote, arrived, reached, remote.candidates
	for ssrc, s := range remote.streams {
		if s.repairs != 0 {
			continue
		}
		repair := reception.RTX
		if s.audio {
			repair = reception.NoRepair
		}
		c.receiver.Add(ssrc, clockRate(s.audio), repair)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	if err := c.listen(); err != nil {
		return err
	}
	c.wg.Go(c.read)
	c.wg.Go(func() { c.shakeHands(ctx) })
	return nil
}

func clockRate(audio bool) uint32 {
	if audio {
		return audioClock
	}
	return videoClock
}

func (c *connection) read() {
	buffer := make([]byte, maxPacketBytes)
	var deadline time.Time
	for {
		now := time.Now()
		next := c.tick(now)
		if !next.Equal(deadline) {
			deadline = next
			if c.socket.SetReadDeadline(deadline) != nil {
				return
			}
		}
		n, from, err := c.socket.ReadFromUDPAddrPort(buffer)
		switch {
		case err == nil:
			c.packet(buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), time.Now())
		case errors.Is(err, net.ErrClosed):
			return
		case !errors.Is(err, os.ErrDeadlineExceeded):
			// ICMP: nobody listens at a port yet.
		}
	}
}

// tick does what is due and returns the time of the next call.
func (c *connection) tick(now time.Time) time.Time {
	next := c.checkAgain(now)
	if c.keys.Load() == nil {
		return next
	}
	if due := c.receiver.Next(); !due.IsZero() && !now.Before(due) {
		c.due = c.receiver.Due(now, c.due[:0])
		c.out.report(c.due)
	}
	if c.reports.Before(now) {
		c.reports = now.Add(c.reportSent(now))
	}
	if due := c.receiver.Next(); !due.IsZero() && due.Before(next) {
		next = due
	}
	if c.reports.Before(next) {
		next = c.reports
	}
	return next
}

// packet demultiplexes (RFC 7983).
func (c *connection) packet(b []byte, from netip.AddrPort, now time.Time) {
	switch {
	case len(b) < 2:
	case b[0] < 4:
		c.stun(b, from, now)
	case b[0] >= 20 && b[0] < 64:
		_, _ = c.pipe.Write(b) // copies; what does not fit is lost
	case b[0] < 128 || b[0] >= 192:
	case b[1] >= 192 && b[1] < 224:
		c.rtcp(b, now)
	default:
		c.rtp(b, c.checks.hop(from), now)
	}
}

func (c *connection) stuck() bool {
	return c.state.Load() != connected || time.Since(time.Unix(0, c.heard.Load())) > lostAfter
}

func (c *connection) coming() bool { return c.state.Load() == connecting }

// close returns when the connection's goroutines have ended.
func (c *connection) close() {
	if c.cancel != nil {
		c.cancel()
		_ = c.dtls.Close() // sends close_notify
	}
	_ = c.pipe.Close()
	_ = c.socket.Close()
	c.wg.Wait()
	for _, s := range c.sends() {
		s.unbind()
	}
}
