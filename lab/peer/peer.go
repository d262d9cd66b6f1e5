// Package peer is a synthetic participant: a client of the signaling protocol
// that sends audio and video with the timing of a real one, and counts what it
// receives from whom. Tests and load generators are made of it.
//
// Its transport is as small as a client's can be, so that hundreds of them beside a
// cluster do not measure themselves: a controlling ICE agent with one socket, Pion's
// DTLS and SRTP, and the node's own receiver of streams. It does what a browser without
// a provable restart does (docs/PROTOCOL.md): on `restart` it makes a new connection at
// once, in a live move beside the one it has. It decodes nothing and asks for no keyframes.
package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Options say whom to be and where.
type Options struct {
	URL        string // of the page or any signaling node: http://host:port
	Token      string
	Room       string // empty: in no room, without media, as on an app's start page
	Wait       bool   // in line, for a place in a full room
	AudioSlots int    // receive slots; 0 = 4
	VideoSlots int    // receive slots; 0 = 4
	ListenOnly bool   // send nothing
	CameraOff  bool   // send sound only, and say that the camera is muted
	Seed       uint64 // of what it sends; 0 = any

	// Stack is shared by the peers of a process and says what video they send; nil =
	// one of its own with VideoLight.
	Stack *Stack

	Messages *Messages // direct messages; nil = it sends none, and answers none

	// Payload sees the payload of each packet, as the node forwards it; retransmissions are left out. It must not keep the
	// bytes and must be quick. nil = nobody.
	Payload func(audio bool, payload []byte)

	// Observe hears of each step of a connection, from any goroutine; it must be quick
	// and must not call the peer. nil = nobody.
	Observe func(Moment)
}

// RefusedError is the server's final word: an error that retrying cannot mend.
type RefusedError struct {
	Code    wire.Code
	Message string
}

// Error gives the code and the server's sentence.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// laterError is a refusal for now, and the server's word on when to try again.
type laterError struct {
	why   string
	after time.Duration
}

// Error gives the server's code and sentence.
func (e *laterError) Error() string { return "refused for now: " + e.why }

// Pauses between tries to reach a signaling node: quick first, because usually one of several is lost.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 1 * time.Second
)

// Peer is one participant. Run gives it life; Stats may be called at any time.
type Peer struct {
	opts  Options
	log   *slog.Logger
	send  *sender             // nil for who only listens
	moved chan *wire.Migrated // moves to report to the server; one waits, more are dropped

	mu      sync.Mutex // guards the fields below
	stats   Stats
	slots   []wire.Slot      // the latest table; replaced, never changed
	lines   map[string]*line // by mid
	streams map[StreamID]*Stream
	tables  uint64 // slot tables so far
	heardOn int    // the connection of the last sound, counted from 1
	moving  bool   // told to restart, and no packet has come since
	live    *left  // what the connection showed that a live move is leaving

	// What follows belongs to Run's goroutine.
	resume  string
	attempt uint64
	epoch   uint64
	conn    *connection
	leaving *connection // for which others still wait, during a live move
	overlap *time.Timer // when it is closed all the same
	due     *wire.Offer // of conn, while nothing has answered it
	nextTry *time.Timer // when conn counts as having failed, unless it is up
	self    wire.PeerID
	others  audience
	tries   uint64 // connections since the last `restart`
}

// New makes a peer that has not joined yet.
func New(opts Options, log *slog.Logger) (*Peer, error) {
	if opts.AudioSlots == 0 {
		opts.AudioSlots = 4
	}
	if opts.VideoSlots == 0 {
		opts.VideoSlots = 4
	}
	if opts.Seed == 0 {
		opts.Seed = rand.Uint64()
	}
	if opts.Stack == nil {
		stack, err := NewStack(VideoLight)
		if err != nil {
			return nil, err
		}
		opts.Stack = stack
	}
	p := &Peer{opts: opts, log: log, moved: make(chan *wire.Migrated, 1), stats: newStats(), lines: make(map[string]*line), streams: make(map[StreamID]*Stream)}
	if !opts.ListenOnly && opts.Stack.video != VideoNone {
		p.send = newSender(opts.Stack.video, opts.CameraOff, opts.Seed)
	}
	return p, nil
}

// Run joins and stays until ctx ends, through the death of signaling and media nodes; then it leaves and returns nil. It
// returns *RefusedError if the server refuses for good.
func (p *Peer) Run(ctx context.Context) error {
	media, stopMedia := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if p.send != nil {
		wg.Go(func() { p.send.run(media) })
	}
	defer wg.Wait()
	defer stopMedia()
	defer func() {
		p.leaveBehind()
		if p.conn != nil {
			p.conn.close()
		}
	}()
	p.nextTry, p.overlap = time.NewTimer(offerLimit), time.NewTimer(offerLimit)
	defer p.nextTry.Stop()
	defer p.overlap.Stop()
	p.note(func(s *Stats) { s.Began = time.Now() })
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
		p.note(func(s *Stats) { s.SocketsLost, s.Attached = s.SocketsLost+1, false })
		if time.Since(began) > lastRetry {
			retry = firstRetry
		}
		pause := retry
		if told, ok := errors.AsType[*laterError](err); ok {
			pause = told.after
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		retry = min(2*retry, lastRetry)
	}
}
