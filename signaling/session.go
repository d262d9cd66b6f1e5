package signaling

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
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

	seat     seat // for the hub
	reached  chan reached
	workers  sync.WaitGroup
	verdicts chan error
	unjudge  context.CancelFunc
	roomless *endings.Connection // nil for a session in a room
	over     <-chan time.Time    // of a connection test
	renew    chan struct{}       // of ICE servers

	expected *sfulink.Opening // the attempt that counts

	pin   pin.Pin // as known here
	link  *sfulink.Link
	drop  context.CancelFunc // ends the link or attempt
	known memory

	former     *sfulink.Link // of a live move, until it ends
	dropFormer context.CancelFunc

	unreserved bool       // this identity opens many rooms
	told       pin.BootID // whose media the client has, or goes to
	cameLive   bool       // to the present pin, by a live move
	migrations migrations

	present *presence.Held    // nil without a session, and for the hidden
	mail    *messaging.Client // the same
	watcher *presence.Watcher // nil until the client watches

	queue   queue
	waiting atomic.Bool // in a line; shed reads it
	began   time.Time
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

// A panic costs the connection whose input it was. A media node's event costs only itself: every session hears it, and
// another client may have caused it.

var (
	errBroke  = errors.New("this signaling node broke while it handled this connection")
	errStruck = errors.New("what this identity sent has broken the server twice")
)

func (s *session) runOrBreak(run func() ending) (how ending) {
	if caught := panics.Catch(func() { how = run() }); caught != nil {
		return s.broke(caught, "a session broke its handling: closed")
	}
	return how
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
	case to := <-s.seat.moves:
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

type ending struct {
	code     websocket.StatusCode
	reason   string
	leave    bool // over: the peer goes too
	expelled bool // over before: the peer goes too
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
	case errors.Is(cause, errFlood), errors.Is(cause, errNonsense):
		return ending{code: websocket.StatusPolicyViolation, reason: cause.Error()}
	default:
		return ending{code: noCode, reason: "gone", hopeless: true}
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
	s.dropFormerLink()
	s.drop()
	if s.link != nil {
		s.link.Close()
	}
	s.workers.Wait()
}

func (s *session) broke(caught *panics.Error, what string) ending {
	s.report(caught, what)
	s.socket.send(faultOf(errBroke))
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

func (s *session) strikeName() string { return s.who.Key + "\x00" + s.who.Identity }

// person is whom the node's limits count.
func (s *session) person() limits.Person {
	return limits.Person{Room: s.who.Room, Key: s.who.Key, Identity: s.who.Identity, Address: s.address}
}

func (s *session) inNoRoom() bool { return s.who.Room == "" }

// ends is when all that a connection test made is over; zero for other sessions.
func (s *session) ends() time.Time {
	if !s.who.Check {
		return time.Time{}
	}
	return time.Unix(s.who.Until, 0)
}

// expire has the session's loop end it at that time.
func (s *session) expire() {
	if ends := s.ends(); !ends.IsZero() {
		s.over = time.After(time.Until(ends))
	}
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
			if !s.pause(ctx, tries) {
				return
			}
		}
	})
}

// tryExpel skips a busy session until the next check.
func (s *session) tryExpel(verdict error) (done bool) {
	select {
	case s.verdicts <- verdict:
		return true
	default:
		return false
	}
}

func (s *session) expel(verdict error) (ending, bool) {
	s.log.Info("session is over", "why", verdict)
	how, done := s.bye(verdict)
	how.expelled = true
	return how, done
}

const (
	takeOutFirst = 100 * time.Millisecond
	takeOutLimit = 5 * time.Second // a death, and a move
)

// takeOut tells the room's node of who left without a link: the others' sessions have it expect everybody.
func (s *session) takeOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takeOutLimit)
	defer cancel()
	at, request := s.pin, &control.RemoveRequest{Room: string(s.who.Room), Peer: s.who.Peer}
	for wait := (backoff.Backoff{First: takeOutFirst, Most: time.Second}); ; {
		if p, err := s.server.moderation.Pin(ctx, s.who.Room); err == nil {
			at = p
		} else if errors.Is(err, orchestrator.ErrNoPin) {
			return
		}
		if s.takenOut(ctx, at, request) || !backoff.Sleep(ctx, wait.Next()) {
			return
		}
	}
}

func (s *session) takenOut(ctx context.Context, at pin.Pin, request *control.RemoveRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the node may be dead
	defer cancel()
	client, err := s.server.parts.Pool.Client(at.Control)
	if err != nil {
		return false
	}
	reply, err := client.Remove(ctx, request)
	return err == nil && len(reply.GetRemoved()) > 0
}

func newPeerID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "p-" + hex.EncodeToString(b[:])
}
