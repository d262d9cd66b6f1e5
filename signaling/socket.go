package signaling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/livekit"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// Further behind, a client is cut off (1008) and resumes with a snapshot.
	outgoingMessages = 256
	// Past that TCP holds the client back.
	incomingMessages = 16
	droppedInARow    = 100
	nonsenseMessages = 20
	// One message may be larger: the roster of a thousand people with metadata.
	outgoingBytes = 4 << 20
	// For a resume with the longest token.
	strangerBytes = 64 << 10
)

const (
	lastWord = time.Second
	// Without a session.
	farewell = 3 * time.Second
)

const noCode websocket.StatusCode = 0

var (
	errOrder     = fault.Detailed(wire.CodeBadMessage, "the first message must be join, resume or connect, and only the first", "Check it against the protocol.")
	errNoFirst   = fault.Detailed(wire.CodeBadMessage, "neither join, resume nor connect came in time", "Check it against the protocol.")
	errLost      = errors.New("the connection to the client was lost")
	errSlow      = errors.New("the client reads too slowly")
	errFull      = fault.Coded(wire.CodeTooManySockets, "this signaling node holds as many connections as it may")
	errCrowded   = fault.Coded(wire.CodeTooManySockets, "too many connections wait to join")
	errTongue    = fault.Detailed(wire.CodeBadMessage, "the WebSocket must ask for the subprotocol "+wire.Subprotocol, "Check it against the protocol.")
	errOrigin    = fault.New(wire.CodeNotAllowed, "pages of this origin may not connect to this signaling node", "Add its host to --origin, or have the proxy pass Host on.")
	errNoUpgrade = errors.New("the request is no WebSocket handshake")
	errNonsense  = errors.New("too many messages that could not be understood")
)

type inbound struct {
	message wire.Message
	request wire.RequestID
	err     error
	last    bool // end the session with err
}

// socket is a WebSocket with two bounded queues. Only send and refuse may be called by any goroutine. A quiet client costs one,
// the reader.
type socket struct {
	conn   *websocket.Conn
	decode func([]byte) (wire.Message, error)
	// livekit translates for a client of LiveKit, and is nil for others.
	livekit *livekit.Translator
	prompts prompts
	panics  *panics.Guard
	tcp     *clientConn
	config  *Config
	log     *slog.Logger
	end     context.CancelCauseFunc
	in      chan inbound
	writer  func()

	ends, writers sync.WaitGroup // all goroutines but the writer; the writer

	mu      sync.Mutex
	out     [][]byte
	queued  int
	writing bool
	closed  bool // nothing more goes out, no ping follows
	pings   *time.Timer
}

// Goroutines end with the connection: a session speaks after ctx.
func (k *socket) start(ctx context.Context, end context.CancelCauseFunc) {
	k.end = end
	detached := context.WithoutCancel(ctx)
	k.writer = func() { defer k.catch(); k.write(detached) }
	k.ends.Go(func() { defer k.catch(); k.read(detached, ctx.Done()) })
	if k.livekit != nil {
		k.ends.Go(func() { defer k.catch(); k.prompt(ctx.Done()) })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends.Add(1) // for the timer or its ping
	k.pings = time.AfterFunc(k.config.PingInterval, func() { k.ping(detached) })
}

func (k *socket) admit() {
	k.tcp.Done()
	k.conn.SetReadLimit(wire.MaxMessageBytes)
}

// refuse answers the client's message of that id with an error. It may be called by any goroutine, as send may.
func (k *socket) refuse(request wire.RequestID, err error) {
	answer := reply.Of(err)
	answer.Request = request
	k.send(answer)
}

// A full queue cuts the client off.
func (k *socket) send(m wire.Message) {
	if k.livekit != nil {
		k.livekit.Write(m)
		return
	}
	if frame := k.encode(m); frame != nil {
		k.queue(frame)
	}
}

// encode returns nil for what cannot be encoded.
func (k *socket) encode(m wire.Message) []byte {
	frame, err := wire.Encode(m)
	if err != nil {
		k.log.Error("message not encoded", "type", wire.TypeOf(m), "error", err)
		return nil
	}
	return frame
}

// queue is send for an encoded message, which others may be sending, too.
func (k *socket) queue(frame []byte) {
	if k.livekit == nil {
		k.push(frame)
	} else if m, err := wire.DecodeServer(frame); err == nil {
		k.livekit.Write(m)
	}
}

// push queues a frame as it goes out.
func (k *socket) push(frame []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if len(k.out) >= outgoingMessages || k.queued > 0 && k.queued+len(frame) > outgoingBytes {
		k.end(errSlow)
		return
	}
	k.out, k.queued = append(k.out, frame), k.queued+len(frame)
	if !k.writing {
		k.writing = true
		k.writers.Go(k.writer)
	}
}

// close sends what is queued unless hopeless, then the close frame. After the patience it closes the connection:
// coder/websocket would wait for ever for the rest of a frame.
func (k *socket) close(how ending) {
	k.mu.Lock()
	k.closed = true
	if k.pings.Stop() {
		k.ends.Done()
	}
	if how.hopeless {
		k.out = nil
	}
	k.mu.Unlock()
	patience := k.config.WriteLimit
	switch {
	case how.hopeless:
		patience = min(patience, lastWord)
	case how.brief:
		patience = min(patience, farewell)
	}
	cut := func() { _ = k.tcp.Close() }
	k.tcp.DropBy(cut)
	limit := time.AfterFunc(patience, cut)
	defer limit.Stop()
	k.writers.Wait()
	if how.code == noCode {
		_ = k.conn.CloseNow()
	} else {
		_ = k.conn.Close(how.code, how.reason)
	}
	k.ends.Wait()
}

func (k *socket) read(ctx context.Context, ended <-chan struct{}) {
	defer k.closeIn()
	limit := rate.NewLimiter(rate.Limit(k.config.MessagesPerSecond), k.config.MessageBurst)
	dropped, nonsense := 0, 0
	for {
		kind, frame, err := k.conn.Read(ctx)
		if err != nil {
			return
		}
		var next inbound
		switch allowed := limit.Allow(); {
		case !allowed && dropped > 0:
			if dropped++; dropped <= droppedInARow {
				continue
			}
			next.err, next.last = limits.ErrFlood, true
		case !allowed:
			dropped++
			next.request, next.err = wire.RequestOf(frame), limits.ErrFlood
		case k.livekit != nil && kind == websocket.MessageBinary:
			dropped = 0
			if next.err = k.translate(frame); next.err == nil {
				if !k.deliver(ended) {
					return
				}
				continue
			}
			_, next.last = errors.AsType[*panics.Error](next.err)
		case kind != websocket.MessageText:
			next.err = fmt.Errorf("%w: it is a frame of the wrong kind", wire.ErrMalformed)
		default:
			dropped = 0
			if caught := panics.Catch(func() {
				next.request = wire.RequestOf(frame)
				next.message, next.err = k.decode(frame)
			}); caught != nil {
				next = inbound{err: caught, last: true}
			}
		}
		if errors.Is(next.err, wire.ErrMalformed) {
			if nonsense++; nonsense > nonsenseMessages {
				next.err, next.last = errNonsense, true
			}
		}
		select {
		case k.in <- next:
			if next.last {
				return
			}
		case <-ended:
			return
		}
	}
}

func (k *socket) write(ctx context.Context) {
	for {
		frame, ok := k.next()
		if !ok {
			return
		}
		limited, cancel := context.WithTimeout(ctx, k.config.WriteLimit)
		kind := websocket.MessageText
		if k.livekit != nil {
			kind = websocket.MessageBinary
		}
		err := k.conn.Write(limited, kind, frame)
		cancel()
		if err != nil {
			k.end(errLost)
			return // nothing more is written
		}
	}
}

func (k *socket) next() (frame []byte, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.out) == 0 {
		k.out, k.writing = nil, false
		return nil, false
	}
	frame, k.out[0] = k.out[0], nil
	k.out, k.queued = k.out[1:], k.queued-len(frame)
	return frame, true
}

func (k *socket) ping(ctx context.Context) {
	defer k.ends.Done()
	defer k.catch()
	limited, cancel := context.WithTimeout(ctx, k.config.PongLimit)
	defer cancel()
	if k.conn.Ping(limited) != nil {
		k.end(errLost)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.ends.Add(1)
		k.pings.Reset(k.config.PingInterval)
	}
}

// catch is deferred by the socket's goroutines.
func (k *socket) catch() {
	if caught := panics.Of(recover()); caught != nil {
		k.panics.Report(k.log, caught, "a socket broke its reading or writing: session closed", "remote", k.tcp.RemoteAddr().String())
		k.end(errBroke)
	}
}

// first waits for the first message that is no ping.
func (k *socket) first(ctx context.Context) (wire.Message, error) {
	limit := time.NewTimer(k.config.FirstMessageLimit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			return nil, errNoFirst
		case next, ok := <-k.in:
			if !ok {
				return nil, errLost
			}
			if ping, ok := next.message.(*wire.Ping); ok {
				k.send(&wire.Pong{T: ping.T})
				continue
			}
			return next.message, next.err
		}
	}
}
