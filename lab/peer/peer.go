// Package peer is a synthetic participant: a client of the signaling protocol
// with a Pion peer connection that sends audio and a light video and counts what
// it receives from whom. Tests and load generators are made of it.
//
// It does what a browser without a provable restart does (docs/PROTOCOL.md): on
// `restart` it makes a new connection at once, for Pion cannot redo DTLS on a
// live one. It decodes nothing.
package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Options say whom to be and where.
type Options struct {
	URL        string // of the page or any signaling node: http://host:port
	FirstURL   string // where the first socket goes; empty = URL
	Token      string
	Room       string
	AudioSlots int // receive slots; 0 = 4
	VideoSlots int // receive slots; 0 = 4
}

// RefusedError is the server's final word: an error that retrying cannot mend.
type RefusedError struct {
	Code    wire.Code
	Message string
}

// Error gives the code and the server's sentence.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// The pauses between tries to reach a signaling node: quick first, for the
// usual loss is one node of several.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 1 * time.Second
)

// Peer is one participant. Run gives it life; Stats may be called at any time.
type Peer struct {
	opts Options
	log  *slog.Logger
	send *sender

	mu    sync.Mutex
	stats Stats // guarded by mu

	// What follows belongs to Run's goroutine.
	resume  string
	attempt uint64
	epoch   uint64
	conn    *connection
	offers  int
	table   slotTable
}

// New makes a peer that has not joined yet.
func New(opts Options, log *slog.Logger) (*Peer, error) {
	if opts.AudioSlots == 0 {
		opts.AudioSlots = 4
	}
	if opts.VideoSlots == 0 {
		opts.VideoSlots = 4
	}
	send, err := newSender("peer")
	if err != nil {
		return nil, err
	}
	return &Peer{opts: opts, log: log, send: send, stats: newStats()}, nil
}

// Run joins and stays until ctx ends, through the death of signaling and SFU
// nodes; then it leaves and returns nil. It returns *RefusedError when the
// server will not have it.
func (p *Peer) Run(ctx context.Context) error {
	media, stopMedia := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.send.run(media) })
	defer wg.Wait()
	defer stopMedia()
	defer func() {
		if p.conn != nil {
			p.conn.close()
		}
	}()
	retry := firstRetry
	for {
		began := time.Now()
		err := p.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if refused := new(RefusedError); errors.As(err, &refused) {
			return refused
		}
		p.log.Debug("session lost", "err", err)
		p.note(func(s *Stats) { s.SocketsLost++ })
		if time.Since(began) > lastRetry {
			retry = firstRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// session holds one socket from its opening to its end.
func (p *Peer) session(ctx context.Context) error {
	base := p.opts.URL
	if p.opts.FirstURL != "" {
		base, p.opts.FirstURL = p.opts.FirstURL, ""
	}
	address, err := socketURL(base)
	if err != nil {
		return err
	}
	dial, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	socket, response, err := websocket.Dial(dial, address, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	defer func() { _ = socket.CloseNow() }()
	socket.SetReadLimit(4 << 20)
	defer p.leaveWith(ctx, socket)
	if err := p.hello(ctx, socket); err != nil {
		return err
	}
	for {
		_, frame, err := socket.Read(ctx)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		message, err := wire.DecodeServer(frame)
		if err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		if err := p.handle(ctx, socket, message); err != nil {
			return err
		}
	}
}

// hello opens a new session, or the old one on this socket.
func (p *Peer) hello(ctx context.Context, socket *websocket.Conn) error {
	if p.resume == "" {
		p.attempt = 1
		return p.write(ctx, socket, &wire.Join{Token: p.opts.Token, Room: p.opts.Room})
	}
	p.attempt++
	return p.write(ctx, socket, &wire.Resume{Resume: p.resume, Attempt: p.attempt, Epoch: p.epoch})
}

// leaveWith says goodbye when Run was told to stop.
func (p *Peer) leaveWith(ctx context.Context, socket *websocket.Conn) {
	if ctx.Err() == nil {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.write(last, socket, &wire.Leave{}) // the server's grace time does the same, later
}

func (p *Peer) write(ctx context.Context, socket *websocket.Conn, message wire.Message) error {
	frame, err := wire.Encode(message)
	if err != nil {
		return err
	}
	if err := socket.Write(ctx, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("write %s: %w", message.Type(), err)
	}
	return nil
}

func socketURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("parse the server's address: %w", err)
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.Path = strings.TrimSuffix(u.Path, "/") + "/ws"
	return u.String(), nil
}
