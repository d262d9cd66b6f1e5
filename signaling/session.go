package signaling

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// session is one client on one socket. Its loop, run, owns the fields; others post to channels.
type session struct {
	server *Server
	socket *socket
	log    *slog.Logger

	who        access.Session
	address    netip.Prefix
	counted    *limits.Person // as limits.Join counted it; nil before
	admitted   bool           // by a good token
	resumes    bool
	unjudged   bool // whether it is over is unknown
	generation generation
	offers     *rate.Limiter

	moves    chan pin.Pin // holds the latest pin
	reached  chan reached
	workers  sync.WaitGroup
	verdicts chan error
	unjudge  context.CancelFunc
	over     <-chan time.Time // of a connection test
	renew    chan struct{}    // of ICE servers

	expected *sfulink.Opening // the attempt that counts

	pin   pin.Pin // as known here
	link  *sfulink.Link
	drop  context.CancelFunc // ends the link or attempt
	known memory

	former     *sfulink.Link // of a live move, until it ends
	dropFormer context.CancelFunc

	room       atomic.Pointer[headroom.Room] // for the hub
	shown      atomic.Bool                   // a camera or screen is on; for the hub
	unreserved bool                          // this identity opens many rooms
	told       pin.BootID                    // whose media the client has, or goes to
	cameLive   bool                          // to the present pin, by a live move
	migrations migrations

	present *presence.Held    // nil without a session, and for the hidden
	mail    *messaging.Client // the same
	watcher *presence.Watcher // nil until the client watches

	queue   queue
	waiting atomic.Bool // in a line; shed reads it
	began   time.Time
}

type ending struct {
	code     websocket.StatusCode
	reason   string
	leave    bool // over: the peer goes too
	expelled bool // over before: the peer goes too
	hopeless bool // nothing more can be written
	brief    bool // nothing is worth patience
}

// serveSocket returns at once, so that net/http frees the request.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn := connOf(r.Context())
	if conn == nil || s.full() {
		writeFault(w, errFull)
		return
	}
	socket, err := s.upgrade(w, r, conn)
	if err != nil {
		s.log.Debug("socket refused", "remote", r.RemoteAddr, "error", err)
		return
	}
	address := addressOf(r, s.config.TrustedProxies)
	if address.IsValid() {
		conn.CountFor(address)
	}
	one := &session{
		began:  time.Now(),
		server: s, socket: socket, log: s.log, address: address,
		offers: rate.NewLimiter(rate.Limit(s.config.OffersPerSecond), s.config.OfferBurst),
		moves:  make(chan pin.Pin, 1), reached: make(chan reached), drop: func() {},
		verdicts: make(chan error), unjudge: func() {}, renew: make(chan struct{}, 1), queue: queue{words: make(chan waitlist.Word, 1)},
	}
	select {
	case s.upgraded <- one:
	case <-r.Context().Done():
		_ = socket.conn.Close(websocket.StatusServiceRestart, "service restart")
	}
}

func (s *Server) hostSessions(ctx context.Context) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		select {
		case one := <-s.upgraded:
			sessions.Go(func() { one.live(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) live(hosted context.Context) {
	ctx, end := context.WithCancelCause(hosted)
	defer end(nil)
	defer s.giveBack()
	s.socket.tcp.DropBy(func() { end(errCrowded) })
	s.socket.start(ctx, end)
	s.server.hosted.add(s)
	defer s.server.hosted.remove(s)
	how := s.runOrBreak(func() ending { return s.run(ctx) })
	if s.who.Peer != "" {
		s.log.Info("session ends", "identity", s.who.Identity, "code", int(how.code), "reason", how.reason)
	}
	if caught := panics.Catch(func() { s.part(ctx, how) }); caught != nil {
		s.report(caught, "a session broke its end")
	}
	end(nil) // ends the remaining workers
	s.socket.close(how)
	if s.link == nil && !s.pin.IsZero() && (how.leave || how.expelled) {
		s.takeOut(hosted)
	}
}

func (s *session) giveBack() {
	if s.admitted {
		s.server.sockets.Add(-1)
	}
	if s.counted != nil {
		s.server.limits.Leave(*s.counted)
	}
}

func (s *session) run(ctx context.Context) ending {
	first, err := s.first(ctx)
	if err == nil {
		err = s.begin(ctx, first)
	}
	if errors.Is(err, errLost) {
		return endingOf(errLost)
	}
	if errors.Is(context.Cause(ctx), errCrowded) && !s.admitted {
		how := s.refuse(errCrowded)
		how.code = noCode // no time for a farewell
		return how
	}
	if ctx.Err() != nil {
		return endingOf(context.Cause(ctx))
	}
	if caught, broken := errors.AsType[*panics.Error](err); broken {
		return s.broke(caught, "a stranger's message broke its decoding: closed")
	}
	if err != nil {
		return s.refuse(err)
	}
	for {
		if how, done := s.turn(ctx); done {
			return how
		}
	}
}

func (s *session) turn(ctx context.Context) (ending, bool) {
	var events, late <-chan *control.PeerEvent // nil without a link
	if s.link != nil {
		events = s.link.Events()
	}
	if s.former != nil {
		late = s.former.Events()
	}
	select {
	case <-ctx.Done():
		return endingOf(context.Cause(ctx)), true
	case next, ok := <-s.socket.in:
		if !ok {
			return endingOf(errLost), true
		}
		return s.handleOrBreak(ctx, next)
	case event, ok := <-events:
		if !ok {
			return s.linkEnded(ctx)
		}
		return s.tellOrSkip(ctx, event)
	case event, ok := <-late:
		s.tellLate(event, ok)
	case to := <-s.moves:
		s.moveTo(ctx, to)
	case r := <-s.reached:
		return s.takeOver(ctx, r)
	case verdict := <-s.verdicts:
		return s.expel(verdict)
	case <-s.over:
		return s.expel(access.ErrExpired)
	case word := <-s.queue.words:
		return s.heard(ctx, word)
	case <-s.renew:
		if s.told != "" { // else it has none yet
			s.giveICEServers()
		}
	}
	return ending{}, false
}

func (s *session) first(ctx context.Context) (wire.Message, error) {
	limit := time.NewTimer(s.server.config.FirstMessageLimit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			return nil, errNoFirst
		case next, ok := <-s.socket.in:
			if !ok {
				return nil, errLost
			}
			if ping, ok := next.message.(*wire.Ping); ok {
				s.socket.send(&wire.Pong{T: ping.T})
				continue
			}
			return next.message, next.err
		}
	}
}

// The client retries on a new socket, perhaps elsewhere.
func (s *session) refuse(err error) ending {
	fault := faultOf(err)
	if fault.Code == wire.CodeStoreUnavailable {
		fault.RetryAfterMs = s.server.retries.take(time.Now()).Milliseconds()
	}
	if unlogged, ok := s.mayLog(err); ok {
		s.log.Info("session refused", "room", s.who.Room, "identity", s.who.Identity, "code", fault.Code, "error", err, "unlogged", unlogged)
	}
	s.socket.send(fault)
	if fault.Retryable {
		return ending{code: websocket.StatusTryAgainLater, reason: string(fault.Code), brief: true}
	}
	return ending{code: websocket.StatusPolicyViolation, reason: string(fault.Code), brief: true}
}

// mayLog always allows good tokens that do not come too often.
func (s *session) mayLog(err error) (unlogged int, ok bool) {
	_, spent := errors.AsType[*limits.QuotaError](err)
	if s.admitted && !spent && !errors.Is(err, errTooOften) {
		return 0, true
	}
	return s.server.strangerLogs.Next()
}

// bye ends the session for good.
func (s *session) bye(err error) (ending, bool) {
	fault := faultOf(err)
	s.socket.send(&wire.Bye{Code: fault.Code, Message: fault.Message})
	return ending{code: websocket.StatusNormalClosure, reason: string(fault.Code)}, true
}

func (s *session) part(ctx context.Context, how ending) {
	s.closeMessages()
	s.disappear(how.leave || how.expelled)
	waited := s.waits()
	s.quit(ctx, how.leave)
	s.server.hub.leave(s)
	s.server.noRooms.drop(s)
	s.unjudge()
	if how.leave && !s.inNoRoom() && !waited {
		// The session's context may end with the socket.
		detached := context.WithoutCancel(ctx)
		s.work(func() { _ = s.server.note(detached, leaveOf(s.who, time.Now())) })
	}
	if s.link != nil && (how.leave || how.expelled) {
		s.link.Leave("left")
	}
	s.dropFormerLink()
	s.drop()
	if s.link != nil {
		s.link.Close()
	}
	s.workers.Wait()
}

func endingOf(cause error) ending {
	switch {
	case errors.Is(cause, errStopping):
		return ending{code: websocket.StatusServiceRestart, reason: "service restart"}
	case errors.Is(cause, errCutOff):
		return ending{code: websocket.StatusServiceRestart, reason: "no media node is heard here"}
	case errors.Is(cause, errBroke):
		return ending{code: websocket.StatusInternalError, reason: "internal error"}
	case errors.Is(cause, errSlow):
		return ending{code: websocket.StatusPolicyViolation, reason: errSlow.Error(), hopeless: true}
	case errors.Is(cause, errFlood), errors.Is(cause, errNonsense):
		return ending{code: websocket.StatusPolicyViolation, reason: cause.Error()}
	default:
		return ending{code: noCode, reason: "gone", hopeless: true}
	}
}

func newPeerID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "p-" + hex.EncodeToString(b[:])
}
