package sfu

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// rememberedAnswers are kept for offers that a reconnecting signaling node repeats.
const rememberedAnswers = 4

// peer is one participant. One that is expected, or has lost its signaling node, is forgotten at its deadline.
type peer struct {
	id     forward.PeerID
	joined uint64 // order of arrival in the room

	// Owned by the room's loop.
	entry        *control.Peer // replaced, never changed: it is being sent
	generation   uint64
	canPublish   bool
	canSubscribe bool
	sources      uint32  // which of them it may publish, as of control.Attach
	outbox       *outbox // nil while no signaling node holds the peer
	deadline     time.Time
	expected     bool // only announced by others so far
	connected    bool
	offers       uint64
	connection   *connection
	path         uint64 // bits per second that its path carries, as last told; 0: no limit is known
	gone         bool
	told         *control.Peer // the entry that the others were told last
	toldAt       time.Time
	reoffers     int // how often the client was asked for a new offer, and when last
	reofferedAt  time.Time
	telling      bool      // a change waits to be told
	unmuted      uint32    // sources that it unmuted here
	judged       bool      // its hand or its grant was changed here, or it was silenced: what others remember of them is older
	askedAt      time.Time // to unmute
	came         bool      // with the room, from another node
	arrived      bool      // after a live move: it shows what this node sends

	negotiation sync.Mutex // held while an offer is answered; guards the fields below
	answers     []answered // the newest last
}

type answered struct {
	id, sdp string
}

// answerTo and remember are called under negotiation.
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

func (p *peer) mediaLives() bool { return p.connection != nil && p.connection.alive() }

// rosterCopy has the fields that clients may be told, and nothing that came with them.
func rosterCopy(entry *control.Peer) *control.Peer {
	return &control.Peer{
		Id: entry.GetId(), Identity: entry.GetIdentity(), Name: entry.GetName(),
		AudioMuted: entry.GetAudioMuted(), VideoMuted: entry.GetVideoMuted(), ScreenShared: entry.GetScreenShared(), Hidden: entry.GetHidden(),
		HandRaisedUnixMs: entry.GetHandRaisedUnixMs(), Silenced: entry.GetSilenced(), Moderator: entry.GetModerator(),
	}
}

func sameEntry(a, b *control.Peer) bool {
	return a.GetId() == b.GetId() && a.GetIdentity() == b.GetIdentity() && a.GetName() == b.GetName() &&
		a.GetAudioMuted() == b.GetAudioMuted() && a.GetVideoMuted() == b.GetVideoMuted() &&
		a.GetScreenShared() == b.GetScreenShared() && a.GetHandRaisedUnixMs() == b.GetHandRaisedUnixMs() &&
		a.GetSilenced() == b.GetSilenced() && a.GetModerator() == b.GetModerator()
}
