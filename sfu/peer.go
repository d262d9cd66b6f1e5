package sfu

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// rememberedAnswers is for offers that a reconnecting signaling node repeats.
const rememberedAnswers = 4

// peer is one participant. An expected or detached one is forgotten at its deadline.
type peer struct {
	id forward.PeerID
	// cameAt is when the peer came, or was announced, here.
	cameAt time.Time
	// joined is the peer's place in the order of arrival.
	joined uint64
	// gone is set by the loop before the peer is removed from the room's media. Everybody may read it.
	gone atomic.Bool
	// mayData says that the peer may send over data channels. The loop sets it, and everybody may read it.
	mayData atomic.Bool

	// The room's loop owns the fields below.

	// entry is replaced and never changed, because others may be reading it. The others were last told of it at toldAt, and telling says
	// that they are told again soon.
	entry   *control.Peer
	toldAt  time.Time
	telling bool

	// What the last Attach said. sources is the set that the peer may publish, as in control.Attach, and knowsScreenAudio that its
	// signaling node can name that source.
	generation       uint64
	signaling        string
	canPublish       bool
	canSubscribe     bool
	sources          uint32
	knowsScreenAudio bool
	// canChat is for data channels and applications, and canRename for applications.
	canChat   bool
	canRename bool
	// knowsRosterChanges says that the signaling node takes several changes of the roster in one event.
	knowsRosterChanges bool
	// knowsAudience says that the signaling node takes the peer's entry apart from the roster.
	knowsAudience bool
	// knowsPlaces says that the signaling node and the client can be sent to another node of the room.
	knowsPlaces bool

	// granted is what an application has changed since the peer came, or nil.
	granted *control.Granted

	// place is the node that has the peer; nil: this one. called says that the peer is to come here from there, and awayThere that it has
	// no signaling node there.
	place     *member
	called    bool
	awayThere bool

	// outbox is nil while the peer has no signaling node here. Then it is forgotten at deadline, unless its place is elsewhere.
	// sentAway says that the branch has told it to ask the owner for another place, since the link is down.
	outbox   *outbox
	deadline time.Time
	sentAway bool
	// expected says that the peer has only been announced by others. came says that it was in the room on another node, and arrived
	// that it shows this node's media after a live move.
	expected bool
	came     bool
	arrived  bool

	// connection is nil before the first offer. uplink is what the client sends on, if it has another connection for that, else nil.
	connection *connection.Connection
	uplink     *connection.Connection
	connected  bool
	offers     uint64
	// path is what the signaling node was last told that the client's path carries, in bits per second; 0: unlimited.
	path uint64
	// The peer was asked for so many new offers in a row, the last time at reofferedAt.
	reoffers    int
	reofferedAt time.Time

	// unmuted has the sources that the peer unmuted here, and judged says that its hand or mutes were changed here: what others
	// remember of them is older.
	unmuted uint32
	judged  bool
	// askedAt is when the peer was last asked to unmute.
	askedAt time.Time
	// chatFrom is the number of the last line before the peer came or was expected, and chatSent of the last that was sent to it.
	chatFrom uint64
	chatSent uint64

	// negotiation is held while an offer is answered, and guards the fields below.
	negotiation sync.Mutex
	// answers are the last ones, the newest at the end.
	answers []answered
}

// shows is what the peer publishes by its own word, as far as it may. Nothing is known before it has attached here.
func (p *peer) shows() roster.Sources {
	if p.expected || p.generation == 0 {
		return 0
	}
	shown := roster.SourcesKnown
	for _, one := range []struct {
		on     bool
		source forward.Source
		bit    roster.Sources
	}{
		{!p.entry.GetAudioMuted(), forward.SourceMicrophone, roster.Microphone},
		{!p.entry.GetVideoMuted(), forward.SourceCamera, roster.Camera},
		{p.entry.GetScreenShared(), forward.SourceScreen, roster.Screen},
		{p.entry.GetScreenShared() && p.entry.GetScreenAudio(), forward.SourceScreenAudio, roster.ScreenAudio},
	} {
		if one.on && p.canPublish && sources.MayPublish(p.sources, one.source) {
			shown |= one.bit
		}
	}
	return shown
}

type answered struct {
	id, sdp string
}

// answerTo returns the answer that was given to an offer of this id. It needs negotiation.
func (p *peer) answerTo(id string) (string, bool) {
	for _, a := range p.answers {
		if a.id == id {
			return a.sdp, true
		}
	}
	return "", false
}

// remember keeps an answer for repetitions of its offer. It needs negotiation.
func (p *peer) remember(id, sdp string) {
	p.answers = append(p.answers, answered{id: id, sdp: sdp})
	if len(p.answers) > rememberedAnswers {
		p.answers = slices.Delete(p.answers, 0, 1)
	}
}

// take keeps what an Attach says of the peer.
func (p *peer) take(request *control.Attach) {
	p.generation, p.signaling = request.GetGeneration(), request.GetSignaling()
	p.canPublish, p.canSubscribe = request.GetCanPublish() && !p.entry.GetHidden(), request.GetCanSubscribe()
	p.sources, p.knowsScreenAudio = request.GetSources(), request.GetKnowsScreenAudio()
	p.knowsRosterChanges, p.knowsPlaces = request.GetKnowsRosterChanges(), request.GetKnowsPlaces()
	p.canChat, p.canRename, p.knowsAudience = request.GetCanChat(), request.GetCanRename(), request.GetKnowsAudience()
	p.keepGranted()
}

// renew gives the peer another entry, and reports whether it differs.
func (p *peer) renew(entry *control.Peer) bool {
	if sameEntry(entry, p.entry) {
		return false
	}
	if entry.GetSilenced() != p.entry.GetSilenced() && p.sending() != nil {
		p.sending().Silence(entry.GetSilenced() | p.forbidden())
	}
	p.entry = entry
	return true
}

// isHere reports whether the peer's place is this node.
func (p *peer) isHere() bool { return !p.expected && p.place == nil }

// sending returns the connection that the client sends on, or nil.
func (p *peer) sending() *connection.Connection {
	if p.uplink != nil {
		return p.uplink
	}
	return p.connection
}

// connectionOf returns the connection that an offer of a part continues, or nil.
func (p *peer) connectionOf(part control.Part) *connection.Connection {
	if part == control.Part_PART_UPLINK {
		return p.uplink
	}
	return p.connection
}

// takeConnections forgets the peer's connections and returns them.
func (p *peer) takeConnections() []*connection.Connection {
	var taken []*connection.Connection
	for _, c := range []*connection.Connection{p.connection, p.uplink} {
		if c != nil {
			taken = append(taken, c)
		}
	}
	p.connection, p.uplink, p.connected = nil, nil, false
	return taken
}

// mediaLives reports whether the peer has a connection that its client may still use.
func (p *peer) mediaLives() bool { return p.connection != nil && p.connection.Alive() }

// A full outbox ends the stream; the next Attach gets a snapshot.
const outboxEvents = 256

// outbox is what a signaling node is still to be told of one peer. The room's loop fills it without waiting; the stream's writer
// empties it.
type outbox struct {
	events chan *control.PeerEvent
	ended  chan struct{}

	once sync.Once
	// last is set before ended is closed.
	last *control.PeerEvent
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

// away reports whether the peer is in its grace time and has no live connection either.
func (p *peer) away() bool {
	if p.place != nil {
		return p.awayThere
	}
	return !p.expected && p.outbox == nil && !p.connected
}
