// Package peer is a synthetic participant: a client of the signaling protocol that sends audio and video with the timing of
// a real one, and counts what it receives from whom. Tests and load generators use it. Its camera shows one of the people of lab/portrait,
// and its sound is silence of the audio level of speech.
//
// Its transport is minimal, so that hundreds of peers beside a cluster do not measure themselves. On `restart` it makes a new
// connection, as a browser without a provable restart does (docs/PROTOCOL.md); it follows a standby as browsers do (ice.go). It decodes nothing and
// requests no keyframes.
package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Options configure a peer.
type Options struct {
	URL         string // http://host:port of the page or of any signaling node
	Token       string
	Room        string // empty: in no room, without media
	Wait        bool   // in line for a full room
	AudioSlots  int    // receive slots; 0 = 4
	VideoSlots  int    // receive slots; 0 = 4
	ListenOnly  bool
	CountOthers bool   // keep Stats.Others; else of simulcast only, to save CPU
	Data        bool   // offers data channels, and opens none
	CameraOff   bool   // audio only, with the camera reported as muted
	Seed        uint64 // of what it sends; 0 = any
	Face        int    // which of the drawn people the camera shows

	// Stack is shared by a process's peers; nil = a new one with VideoLight.
	Stack *Stack

	Messages *Messages // nil = no direct messages

	// Payload gets each payload but retransmissions. It must be quick and must not keep the bytes. May be nil.
	Payload func(audio bool, payload []byte)

	// Observe gets each step, from any goroutine. It must be quick and must not call the peer. May be nil.
	Observe func(Moment)
}

// RefusedError is an error of the server that a retry cannot mend.
type RefusedError struct {
	Code    wire.Code
	Message string
}

// Error returns the code and the server's sentence.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

type laterError struct {
	why   string
	after time.Duration
}

// Error returns the server's code and sentence.
func (e *laterError) Error() string { return "refused for now: " + e.why }

// The first retry is quick: usually only one of several nodes is lost.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 1 * time.Second
)

// Peer is one participant. Stats may be called at any time.
type Peer struct {
	opts  Options
	log   *slog.Logger
	send  *sender
	moved chan *wire.Migrated // for the server; dropped when full

	mu      sync.Mutex // guards the fields below
	stats   Stats
	slots   []wire.Slot      // never modified
	lines   map[string]*line // by mid
	streams map[StreamID]*Stream
	tables  uint64
	heardOn way   // of the last audio
	moving  bool  // from a restart until its first packet
	live    *left // set during a live move

	// The fields below belong to Run's goroutine.
	resume  string
	attempt uint64
	epoch   uint64
	node    ring.NodeID
	conn    *connection
	leaving *connection // during a live move
	overlap *time.Timer // when leaving is closed at the latest
	due     *wire.Offer // unanswered
	nextTry *time.Timer // when conn counts as failed, unless it is up
	self    wire.PeerID
	others  audience
	tries   uint64 // connections since the last `restart`
}

// New makes a peer; Run joins.
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
		send, err := newSender(opts)
		if err != nil {
			return nil, err
		}
		p.send = send
	}
	return p, nil
}

// Run joins and stays until ctx ends, whatever nodes die; then it leaves and returns nil.
// It returns *RefusedError if the server refuses for good.
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
