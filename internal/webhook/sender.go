package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/ring"
)

// ContentType is LiveKit's: receivers shall check the signature before they parse.
const ContentType = "application/webhook+json"

// Store has the facts that wait.
type Store interface {
	// Lead takes or prolongs the lease of the cluster's sender. A life of 0 gives it back.
	Lead(ctx context.Context, sender string, life time.Duration) (bool, error)
	// Marked returns rooms for which facts were queued since a mark, perhaps some from before, and the newest mark.
	Marked(ctx context.Context, since int64) (rooms []ring.RoomID, last int64, err error)
	// Look compares about so many rooms with what receivers know, and queues what was missed, for instance because a media node died. A cursor
	// of 0 begins, and ends, a round of all rooms.
	Look(ctx context.Context, cursor uint64, most int) (rooms []ring.RoomID, next uint64, err error)
	// Waiting returns the next facts of a room for a receiver, and how many before them were dropped because too many waited. The empty room
	// has the facts of nodes.
	Waiting(ctx context.Context, room ring.RoomID, receiver string, most int) (facts []Fact, dropped int, err error)
	// Sent says that a receiver needs the facts up to a position no more.
	Sent(ctx context.Context, room ring.RoomID, position, receiver string, receivers []string) error
}

// Signer signs bodies.
type Signer interface {
	// SignBody returns the value of the header Authorization.
	SignBody(key string, body []byte, life time.Duration) (string, error)
}

// Config is of all senders of a cluster.
type Config struct {
	// Receivers are URLs.
	Receivers []string
	// Key is the name of the API key that signs. Empty: the first.
	Key string
	// GiveUpAfter is how old a fact is when it is no longer sent.
	GiveUpAfter time.Duration
	// Lease is how long a dead sender is waited for.
	Lease time.Duration
	// Poll is how often the marks are read.
	Poll time.Duration
	// Timeout is of one request.
	Timeout time.Duration
	// FirstRetry and LastRetry are the pauses after failed requests of a room.
	FirstRetry time.Duration
	LastRetry  time.Duration
	// Parallel is how many rooms a receiver is told of at the same time. A receiver that fails is tried with one.
	Parallel int
}

// DefaultConfig is the binary's.
func DefaultConfig() Config {
	return Config{
		GiveUpAfter: time.Hour,
		// The lease is renewed three times in its life.
		Lease: 6 * time.Second,
		Poll:  500 * time.Millisecond,
		// LiveKit's clients wait as long.
		Timeout:    10 * time.Second,
		FirstRetry: 500 * time.Millisecond,
		LastRetry:  30 * time.Second,
		Parallel:   16,
	}
}

// Check returns what is wrong with the URL of a receiver, in one sentence that does not show a password.
func Check(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("--webhook-url: it is not a URL: give one such as https://app.example.org/webhook")
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return fmt.Errorf("--webhook-url: %q is not the address of a web server: give one such as https://app.example.org/webhook", u.Redacted())
	case u.Fragment != "":
		return fmt.Errorf("--webhook-url: %q has a fragment (#), which no server sees", u.Redacted())
	}
	return nil
}

// shown is what logs and events say of a receiver: its path and query may be secret.
func shown(receiver string) string {
	u, err := url.Parse(receiver)
	if err != nil {
		return "a receiver"
	}
	return u.Scheme + "://" + u.Host
}

const (
	// These many facts are read at a time.
	page = 100
	// These many rooms are looked at with each poll, so that a round of 100,000 takes some minutes and a round of 200 is at once.
	looked = 200
	// maxReply is how much of an answer is read, so that its connection can be used again.
	maxReply = 64 << 10
)

// Counters count since the start.
type Counters struct {
	Sent, Failed, GivenUp atomic.Uint64
}

// Sender sends the facts while it has the lease. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	name   string
	node   ring.NodeID
	store  Store
	signer Signer
	events *events.Recorder
	panics *panics.Guard
	log    *slog.Logger
	client *http.Client
	lines  []*line
	// leads says that a term is under way.
	leads atomic.Bool

	counters Counters
}

// NewSender starts nothing: Run sends. recorder may be nil.
func NewSender(cfg Config, node ring.NodeID, store Store, signer Signer, recorder *events.Recorder, guard *panics.Guard, log *slog.Logger) *Sender {
	s := &Sender{
		cfg: cfg, name: string(node) + "/" + rand.Text(), node: node, store: store, signer: signer, events: recorder, panics: guard, log: log,
		client: &http.Client{
			Timeout: cfg.Timeout,
			// A redirect would take the signed body to a server that nobody named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	for _, receiver := range slices.Compact(slices.Sorted(slices.Values(cfg.Receivers))) {
		s.lines = append(s.lines, newLine(receiver, cfg))
	}
	return s
}

// Counters returns what was sent, failed and given up.
func (s *Sender) Counters() *Counters { return &s.counters }

// Run sends until ctx ends, and returns nil.
func (s *Sender) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	for ctx.Err() == nil {
		if s.lead(ctx) {
			s.term(ctx)
		}
		backoff.Sleep(ctx, s.cfg.Lease/3)
	}
	// So that the next sender need not wait.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = s.store.Lead(last, s.name, 0)
	return nil
}

// lead asks for the lease.
func (s *Sender) lead(ctx context.Context) bool {
	attempt, cancel := context.WithTimeout(ctx, s.cfg.Lease/3)
	defer cancel()
	leads, err := s.store.Lead(attempt, s.name, s.cfg.Lease)
	return leads && err == nil
}

// term sends while the lease lasts. Two senders at a time, one of which was paused, do no harm but repetitions.
func (s *Sender) term(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	s.leads.Store(true)
	defer s.leads.Store(false)
	s.log.Info("webhooks are sent by this node", "receivers", len(s.lines))
	for _, l := range s.lines {
		work.Go(func() {
			s.panics.Catch(s.log, "sending webhooks broke", func() { s.serve(ctx, l) })
			end()
		})
	}
	work.Go(func() {
		s.panics.Catch(s.log, "looking for webhooks broke", func() { s.look(ctx) })
		end()
	})
	until := time.Now().Round(0).Add(s.cfg.Lease)
	for backoff.Sleep(ctx, s.cfg.Lease/3) {
		asked := time.Now().Round(0)
		if s.lead(ctx) {
			until = asked.Add(s.cfg.Lease)
		}
		// The wall clock counts while the machine is suspended, as the store's clock does.
		if left := until.Sub(time.Now().Round(0)); left <= s.cfg.Lease/3 {
			s.log.Warn("webhooks are no longer sent by this node: its lease has ended")
			return
		}
	}
}

// look finds rooms with facts: those that were marked at once, and all others in turn.
func (s *Sender) look(ctx context.Context) {
	var since int64
	var cursor uint64
	failing := false
	for {
		rooms, last, err := s.store.Marked(ctx, since)
		found, next, lookErr := s.store.Look(ctx, cursor, looked)
		if err == nil {
			since = last
		}
		if lookErr == nil {
			cursor = next
		}
		if err = cmp.Or(err, lookErr); (err != nil) != failing && ctx.Err() == nil {
			failing = err != nil
			s.log.Warn("looking for webhooks", "failing", failing, "error", err)
		}
		for _, l := range s.lines {
			l.wake(append(append([]ring.RoomID{""}, rooms...), found...))
		}
		if !backoff.Sleep(ctx, s.cfg.Poll) {
			return
		}
	}
}

// serve tells one receiver of the rooms that are due.
func (s *Sender) serve(ctx context.Context, l *line) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		room, wait, ok := l.next(time.Now())
		if ok {
			work.Go(func() {
				outcome := outcome{err: errBroke}
				s.panics.Catch(s.log, "sending a room's webhooks broke", func() { outcome = s.tell(ctx, l, room) })
				l.done(room, outcome, time.Now())
				if l.turned(outcome) && ctx.Err() == nil {
					s.log.Warn("a receiver of webhooks", "receiver", shown(l.receiver), "failing", outcome.err != nil, "error", outcome.err)
				}
			})
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.woken:
		case <-time.After(wait):
		}
	}
}

var errBroke = errors.New("sending webhooks broke")

// outcome is of one turn of a room.
type outcome struct {
	err error
	// more says that facts are left.
	more bool
	// asked says that the receiver was asked.
	asked bool
	// left is how many of the facts that were read the receiver has not accepted.
	left int
}

// tell sends what waits in a room, in order, until one fails.
func (s *Sender) tell(ctx context.Context, l *line, room ring.RoomID) outcome {
	facts, dropped, err := s.store.Waiting(ctx, room, l.receiver, page)
	if err != nil {
		return outcome{err: err}
	}
	if dropped > 0 {
		s.giveUp(l, room, dropped, "too many waited", facts[0].Position)
	}
	asked, lost, why := false, 0, error(nil)
	defer func() {
		if lost > 0 {
			s.giveUp(l, room, lost, why.Error(), facts[0].Position)
		}
	}()
	for i := range facts {
		f := &facts[i]
		// A fact without a kind could not be read.
		if f.Kind != "" {
			asked = true
			err := s.post(ctx, l.receiver, f)
			switch {
			case err == nil:
				s.counters.Sent.Add(1)
			case ctx.Err() != nil:
				return outcome{}
			case f.age(time.Now()) < s.cfg.GiveUpAfter:
				s.counters.Failed.Add(1)
				return outcome{err: err, asked: true, left: len(facts) - i}
			default:
				s.counters.Failed.Add(1)
				lost, why = lost+1, err
			}
		}
		if err := s.store.Sent(ctx, room, f.Position, l.receiver, s.cfg.Receivers); err != nil {
			return outcome{err: err, more: true, asked: asked}
		}
	}
	return outcome{more: len(facts) == page, asked: asked}
}

// giveUp notes that a receiver will not get some facts.
func (s *Sender) giveUp(l *line, room ring.RoomID, facts int, why, about string) {
	s.counters.GivenUp.Add(uint64(facts)) //nolint:gosec // a count
	s.log.Error("webhooks were given up", "receiver", shown(l.receiver), "room", string(room), "facts", facts, "why", why)
	s.events.Record(events.Event{
		Kind: events.WebhookLost, Node: s.node, Room: room, Peers: facts, Cause: shown(l.receiver) + ": " + why, About: shown(l.receiver) + " " + about,
	})
}

// post sends one fact.
func (s *Sender) post(ctx context.Context, receiver string, f *Fact) error {
	body, err := f.Body()
	if err != nil {
		return err
	}
	signed, err := s.signer.SignBody(s.cfg.Key, body, tokenLife)
	if err != nil {
		return fmt.Errorf("sign a webhook: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver, bytes.NewReader(body))
	if err != nil {
		return errors.New("the receiver's URL cannot be used")
	}
	request.Header.Set("Content-Type", ContentType)
	request.Header.Set("Authorization", signed)
	request.Header.Set("User-Agent", "Holdfast")
	answer, err := s.client.Do(request)
	if err != nil {
		// The error of http shows the whole URL.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return fmt.Errorf("no answer: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxReply))
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// tokenLife is LiveKit's.
const tokenLife = 5 * time.Minute
