package signaling

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// session is one client on one socket. Its loop, run, owns the fields; others post to channels.
type session struct {
	server *Server
	socket *socket
	log    *slog.Logger
	began  time.Time

	// Who the client is. counted is the person as limits.Join counted it, nil before; admitted says that the token was good; unreserved
	// says that this identity opens many rooms.
	who        access.Session
	address    netip.Prefix
	counted    *limits.Person
	admitted   bool
	resumes    bool
	unreserved bool
	// takesRosterChanges says that the client knows wire.RosterChanges, and knowsPlaces that it takes a restart to another node under the
	// same epoch.
	takesRosterChanges bool
	knowsPlaces        bool

	// What others post to the loop. over ends a connection test; renew asks for new ICE servers.
	reached  chan reached
	verdicts chan error
	over     <-chan time.Time
	renew    chan struct{}
	workers  sync.WaitGroup

	// Whether the session is over for good. unjudged: the store has not said so yet. unjudge ends the question. roomless is nil for a session
	// in a room.
	unjudged bool
	unjudge  context.CancelFunc
	roomless *endings.Connection

	// The link to the room's media node, and the pin as known here. drop ends the link or the attempt to get one; only the attempt in expected
	// counts. The client's media is, or goes, to place, which is the node of the pin or a branch of the room; the client heard of it under the
	// epoch told. place is zero before the client is in the room. cameLive says that a live move leads, or led, to the place.
	pin        pin.Pin
	place      sfulink.Place
	told       uint64
	link       *sfulink.Link
	drop       context.CancelFunc
	expected   *sfulink.Opening
	generation generation
	former     formerLink
	cameLive   bool
	migrations migrations

	// Values with methods of their own. The hub also reads seat, and a node that sheds clients reads line.waiting.
	seat     seat
	line     *line
	known    memory
	mail     mail
	watching watching
	offers   *rate.Limiter
}

func (s *session) live(hosted context.Context) {
	ctx, end := context.WithCancelCause(hosted)
	defer end(nil)
	defer func() {
		if s.admitted {
			s.server.sockets.Add(-1)
		}
		if s.counted != nil {
			s.server.limits.Leave(*s.counted)
		}
	}()
	s.socket.tcp.DropBy(func() { end(errCrowded) })
	s.socket.start(ctx, end)
	s.server.hosted.add(s)
	defer s.server.hosted.remove(s)
	how := s.catchRun(func() ending { return s.run(ctx) })
	s.countEnd(how)
	if s.who.Peer != "" {
		s.log.Info("session ends", "identity", s.who.Identity, "code", int(how.code), "reason", how.reason)
	}
	if caught := panics.Catch(func() { s.part(ctx, how) }); caught != nil {
		s.report(caught, "a session broke its end")
	}
	end(nil) // ends the remaining workers
	s.socket.close(how)
	if s.link == nil && !s.pin.IsZero() && (how.leave || how.expelled) {
		s.server.moderation.TakeOut(hosted, s.who.Room, s.who.Peer, s.pin)
	}
}

// A panic costs the connection whose input it was. A media node's event costs only itself: every session hears it, and
// another client may have caused it.

var errBroke = errors.New("this signaling node broke while it handled this connection")

// catchRun runs the session, and ends it if something in it breaks.
func (s *session) catchRun(run func() ending) (how ending) {
	if caught := panics.Catch(func() { how = run() }); caught != nil {
		return s.endBroken(caught, "a session broke its handling: closed")
	}
	return how
}

func (s *session) run(ctx context.Context) ending {
	first, err := s.socket.first(ctx)
	if err == nil {
		if err = s.beginTraced(ctx, first); ctx.Err() == nil {
			s.countJoin(first, err)
		}
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
		return s.endBroken(caught, "a stranger's message broke its decoding: closed")
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
	if s.former.link != nil {
		late = s.former.link.Events()
	}
	select {
	case <-ctx.Done():
		return endingOf(context.Cause(ctx)), true
	case next, ok := <-s.socket.in:
		if !ok {
			return endingOf(errLost), true
		}
		return s.catchMessage(ctx, next)
	case event, ok := <-events:
		if !ok {
			return s.linkEnded(ctx)
		}
		return s.catchEvent(ctx, event)
	case event, ok := <-late:
		s.tellLate(event, ok)
	case to := <-s.seat.moves:
		s.moveTo(ctx, to)
	case boot := <-s.seat.died:
		s.branchDied(boot)
	case r := <-s.reached:
		return s.takeOver(ctx, r)
	case verdict := <-s.verdicts:
		return s.expel(verdict)
	case <-s.over:
		return s.expel(access.ErrExpired)
	case word := <-s.line.words:
		return s.heard(ctx, word)
	case <-s.renew:
		if s.place != (sfulink.Place{}) { // else it has none yet
			s.giveICEServers()
		}
	}
	return ending{}, false
}

type ending struct {
	code     websocket.StatusCode
	reason   string
	leave    bool // over: the peer goes too
	expelled bool // over before: the peer goes too
	removed  bool // over: the media node has taken the peer out
	hopeless bool // nothing more can be written
	brief    bool // nothing is worth patience
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
	case errors.Is(cause, limits.ErrFlood), errors.Is(cause, errNonsense):
		return ending{code: websocket.StatusPolicyViolation, reason: cause.Error()}
	default:
		return ending{code: noCode, reason: "gone", hopeless: true}
	}
}

// The client retries on a new socket, perhaps elsewhere.
func (s *session) refuse(err error) ending {
	fault := reply.Of(err)
	if fault.Code == wire.CodeStoreUnavailable {
		fault.RetryAfterMs = s.server.retries.take(time.Now()).Milliseconds()
	}
	if fault.Code == wire.CodeBadToken {
		s.server.warnOfToken(err, "WebSocket", s.address.String())
	} else if unlogged, ok := s.mayLog(err); ok {
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
	if s.admitted && !spent && !errors.Is(err, limits.ErrTooOften) {
		return 0, true
	}
	return s.server.strangerLogs.Next()
}

// bye ends the session for good.
func (s *session) bye(err error) (ending, bool) {
	fault := reply.Of(err)
	s.socket.send(&wire.Bye{Code: fault.Code, Message: fault.Message})
	return ending{code: websocket.StatusNormalClosure, reason: string(fault.Code)}, true
}

func (s *session) part(ctx context.Context, how ending) {
	s.mail.close()
	s.watching.disappear(how.leave || how.expelled || how.removed)
	waited := s.line.waits()
	s.line.quit(ctx, how.leave)
	s.server.hub.Leave(&s.seat)
	s.server.endings.Forget(s.roomless)
	s.unjudge()
	if how.leave && !s.inNoRoom() && !waited {
		// The session's context may end with the socket.
		detached := context.WithoutCancel(ctx)
		s.work(func() { s.server.endings.Left(detached, s.who) })
	}
	if s.link != nil && (how.leave || how.expelled) {
		s.link.Leave("left")
	}
	s.former.end()
	s.drop()
	if s.link != nil {
		s.link.Close()
	}
	s.workers.Wait()
}

// endBroken reports a panic, tells the client, and ends the session.
func (s *session) endBroken(caught *panics.Error, what string) ending {
	s.report(caught, what)
	s.socket.send(reply.Of(errBroke))
	return endingOf(errBroke)
}

func (s *session) report(caught *panics.Error, what string) {
	s.server.panics.Report(s.log, caught, what, "identity", s.who.Identity, "remote", s.socket.tcp.RemoteAddr().String())
}

// work runs f beside the loop; a panic ends the session.
func (s *session) work(f func()) {
	s.workers.Go(func() {
		if caught := panics.Catch(f); caught != nil {
			s.report(caught, "work for a session broke: closed")
			s.socket.end(errBroke)
		}
	})
}

// strikeName is whom a panic is counted for.
func strikeName(who access.Session) string { return who.Key + "\x00" + who.Identity }

// person is whom the node's limits count.
func (s *session) person() limits.Person {
	return limits.Person{Room: s.who.Room, Key: s.who.Key, Identity: s.who.Identity, Address: s.address}
}

func (s *session) inNoRoom() bool { return s.who.Room == "" }

// endsOf is when all that a connection test made is over; zero for other sessions.
func endsOf(who access.Session) time.Time {
	if !who.Check {
		return time.Time{}
	}
	return time.Unix(who.Until, 0)
}

// judge asks until the store answers.
func (s *session) judge(ctx context.Context) {
	s.unjudge()
	ctx, s.unjudge = context.WithCancel(ctx)
	who := s.who // a rename changes it
	s.work(func() {
		for tries := 0; ; tries++ {
			err := s.server.endings.Ended(ctx, who)
			if err == nil || ctx.Err() != nil {
				return
			}
			if endings.Over(err) {
				select {
				case s.verdicts <- err:
				case <-ctx.Done():
				}
				return
			}
			if !s.server.config.pause(ctx, tries) {
				return
			}
		}
	})
}

func (s *session) expel(verdict error) (ending, bool) {
	s.log.Info("session is over", "why", verdict)
	how, done := s.bye(verdict)
	how.expelled = true
	return how, done
}
