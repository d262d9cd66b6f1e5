package data

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/pion/logging"
	"github.com/pion/sctp"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

const (
	// Streams that clients negotiate without DATA_CHANNEL_OPEN, which is not said again to the next node of a connection that moves. Browsers
	// number the channels that they open from 0 or 1.
	reliableStream = 100
	lossyStream    = 101
	// maxStreams is above the three channels of LiveKit's clients. A client that opens more loses all.
	maxStreams = 8
	// receiveBytes waits at most while a client is slowed down.
	receiveBytes = 128 << 10
)

// Client is whose channels they are.
type Client struct {
	Sender
	// MaySend reports whether the client may send at this moment. It must not wait.
	MaySend func() bool
	// Streams need no DATA_CHANNEL_OPEN.
	Streams Streams
	Log     *slog.Logger
	// Panics counts the panics of what the client sends, and Broke, which may be nil, is told of each.
	Panics *panics.Guard
	Broke  func()
}

// Streams are by kind the streams that the client has from the start; 0: it opens one.
type Streams [2]uint16

// Negotiated are the streams of clients that negotiate them.
func Negotiated() Streams { return Streams{Reliable: reliableStream, Lossy: lossyStream} }

// client is one association. Its methods may be called by any goroutine.
type client struct {
	room    *Room
	who     Client
	sending *rate.Limiter

	// channels are by kind, and nil while they are not open.
	channels [2]atomic.Pointer[sctp.Stream]
}

// Serve serves the data channels of a client over DTLS until the connection or the association ends. It closes the connection.
func (r *Room) Serve(conn net.Conn, who Client) {
	association, err := sctp.ServerWithOptions(
		sctp.WithNetConn(conn), sctp.WithMaxReceiveBufferSize(receiveBytes), sctp.WithEnableZeroChecksum(true),
		sctp.WithLoggerFactory(&logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}),
	)
	if err != nil {
		who.Log.Debug("no SCTP association", "error", err)
		return
	}
	who.Log.Debug("SCTP association is up")
	ctx, end := context.WithCancel(context.Background())
	c := &client{room: r, who: who}
	r.join(c)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer func() {
		r.leave(c)
		end()
		_ = association.Close()
	}()
	c.openFromTheStart(ctx, association, &reading)
	for range maxStreams {
		stream, err := association.AcceptStream()
		if err != nil {
			return
		}
		reading.Go(func() { c.read(ctx, association, stream, nil) })
	}
	_, err = association.AcceptStream()
	if err == nil {
		who.Log.Info("client opens too many data channels: all are closed", "channels", maxStreams)
		association.Abort("too many data channels")
	}
}

// openFromTheStart opens the streams that need no DATA_CHANNEL_OPEN.
func (c *client) openFromTheStart(ctx context.Context, association *sctp.Association, reading *sync.WaitGroup) {
	for kind, id := range c.who.Streams {
		if id == 0 {
			continue
		}
		stream, err := association.OpenStream(id, sctp.PayloadTypeWebRTCBinary)
		if err != nil {
			return // The association has ended.
		}
		if Kind(kind) == Lossy {
			stream.SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 0)
		}
		c.channels[kind].Store(stream)
		reading.Go(func() { c.read(ctx, association, stream, &c.channels[kind]) })
	}
}

// read handles what comes on a stream. channel is nil before DATA_CHANNEL_OPEN.
func (c *client) read(ctx context.Context, association *sctp.Association, stream *sctp.Stream, channel *atomic.Pointer[sctp.Stream]) {
	b := make([]byte, MaxMessageBytes)
	defer func() {
		if channel != nil {
			channel.CompareAndSwap(stream, nil)
		}
		_ = stream.Close()
	}()
	for {
		n, protocol, err := stream.ReadSCTP(b)
		switch {
		case errors.Is(err, io.ErrShortBuffer):
			// The message stays first in the stream.
			c.room.tally.Refused.Add(1)
			c.who.Log.Info("client sends a message on a data channel that is longer than it was told: its data channels ended", "bytes", MaxMessageBytes)
			association.Abort("message too long")
			return
		case err != nil:
			return
		}
		broke := c.who.Panics.Catch(c.who.Log, "a message on a data channel broke its handling: it is left out", func() {
			if protocol == sctp.PayloadTypeWebRTCDCEP {
				channel = c.opened(stream, channel, b[:n])
				return
			}
			c.heard(ctx, channel, b[:n])
		})
		if broke && c.who.Broke != nil {
			c.who.Broke()
		}
	}
}

// opened answers a DATA_CHANNEL_OPEN, and returns the place of the channel; nil for one that is not known.
func (c *client) opened(stream *sctp.Stream, before *atomic.Pointer[sctp.Stream], message []byte) *atomic.Pointer[sctp.Stream] {
	said, ok := readOpening(message)
	if !ok {
		return before
	}
	if _, err := stream.WriteSCTP([]byte{ackMessage}, sctp.PayloadTypeWebRTCDCEP); err != nil {
		return before
	}
	stream.SetReliabilityParams(said.unordered, said.limit, said.number)
	var channel *atomic.Pointer[sctp.Stream]
	switch said.label {
	case labelReliable:
		channel = &c.channels[Reliable]
	case labelLossy:
		channel = &c.channels[Lossy]
	default:
		return before
	}
	channel.Store(stream)
	c.who.Log.Debug("data channel is open", "label", said.label)
	return channel
}

// heard takes a message of the client's.
func (c *client) heard(ctx context.Context, channel *atomic.Pointer[sctp.Stream], message []byte) {
	switch channel {
	case &c.channels[Reliable]:
		c.room.take(ctx, c, Reliable, message)
	case &c.channels[Lossy]:
		c.room.take(ctx, c, Lossy, message)
	}
}

// outcome is what became of a message to a client.
type outcome int

const (
	sendSent outcome = iota
	sendSlow
	sendMissed
)

// send waits for nothing.
func (c *client) send(kind Kind, message []byte) outcome {
	stream := c.channels[kind].Load()
	if stream == nil {
		return sendMissed
	}
	room := uint64(reliableQueueBytes)
	if kind == Lossy {
		room = lossyQueueBytes
	}
	if stream.BufferedAmount()+uint64(len(message)) > room {
		return sendSlow
	}
	if _, err := stream.WriteSCTP(message, sctp.PayloadTypeWebRTCBinary); err != nil {
		return sendMissed
	}
	return sendSent
}
