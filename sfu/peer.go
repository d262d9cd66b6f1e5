package sfu

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// for offers that a reconnecting signaling node repeats
const rememberedAnswers = 4

// peer is one participant. An expected or detached one is forgotten at its deadline.
type peer struct {
	id     forward.PeerID
	joined uint64

	// The room's loop owns the fields below.
	entry            *control.Peer // replaced, never changed: others may read it
	generation       uint64
	canPublish       bool
	canSubscribe     bool
	sources          uint32  // it may publish, as in control.Attach
	knowsScreenAudio bool    // its signaling node can name that source
	outbox           *outbox // nil without a signaling node
	deadline         time.Time
	expected         bool // only announced by others
	connected        bool
	offers           uint64
	connection       *connection.Connection
	path             uint64        // bits per second; 0: unlimited
	gone             atomic.Bool   // written by the loop, before forward's RemovePeer
	told             *control.Peer // entry, as last told
	toldAt           time.Time
	reoffers         int
	reofferedAt      time.Time
	telling          bool
	unmuted          uint32    // sources it unmuted here
	judged           bool      // hand or mutes changed here: others' memory is older
	askedAt          time.Time // to unmute
	came             bool      // from another node
	chatFrom         uint64    // the last line before it came or was expected
	chatSent         uint64    // the last line that was sent to it
	arrived          bool      // shows this node's media after a live move

	negotiation sync.Mutex // held while answering; guards the fields below
	answers     []answered // the newest last
}

type answered struct {
	id, sdp string
}

// answerTo and remember need negotiation.
func (p *peer) answerTo(id string) (string, bool) {
	for _, a := range p.answers {
		if a.id == id {
			return a.sdp, true
		}
	}
	return "", false
}

func (p *peer) remember(id, sdp string) {
	p.answers = append(p.answers, answered{id: id, sdp: sdp})
	if len(p.answers) > rememberedAnswers {
		p.answers = slices.Delete(p.answers, 0, 1)
	}
}

func (p *peer) mediaLives() bool { return p.connection != nil && p.connection.Alive() }

// A full outbox ends the stream; the next Attach gets a snapshot.
const outboxEvents = 256

// The room's loop fills an outbox without waiting; the stream's writer empties it.
type outbox struct {
	events chan *control.PeerEvent
	ended  chan struct{}

	once sync.Once
	last *control.PeerEvent // set before ended is closed
}

func newOutbox() *outbox {
	return &outbox{events: make(chan *control.PeerEvent, outboxEvents), ended: make(chan struct{})}
}

func (o *outbox) send(event *control.PeerEvent) bool {
	select {
	case o.events <- event:
		return true
	default:
		return false
	}
}

// end closes the stream after what is queued, and after last unless nil.
func (o *outbox) end(last *control.PeerEvent) {
	o.once.Do(func() {
		o.last = last
		close(o.ended)
	})
}

func (o *outbox) drain(write func(*control.PeerEvent) error) error {
	for {
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
			continue
		default:
		}
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
		case <-o.ended:
			return o.drainRest(write)
		}
	}
}

func (o *outbox) drainRest(write func(*control.PeerEvent) error) error {
	for {
		select {
		case event := <-o.events:
			if err := write(event); err != nil {
				return err
			}
		default:
			if o.last == nil {
				return nil
			}
			return write(o.last)
		}
	}
}

func (p *peer) away() bool { return !p.expected && p.outbox == nil && !p.connected }
