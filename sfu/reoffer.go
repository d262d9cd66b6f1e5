package sfu

import (
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// The reasons for asking for a new offer, in the words of the clients' protocol.
const (
	reofferSilent     = "silent"
	reofferUnplaced   = "unplaced"
	reofferNoKeyframe = "no-keyframe"
	reofferCodec      = "codec"
	reofferUnreached  = "unreached"
)

const (
	// A publisher is asked so often and so many times in a row, because its camera may have stopped for a reason that no offer mends.
	// After reofferRest without a request the count begins anew.
	reofferEvery = 5 * time.Second
	maxReoffers  = 3
	reofferRest  = time.Minute
	// Right after DTLS was established, silence means nothing.
	connectedFor = 2 * time.Second
)

// reoffers asks publishers for new offers, here and by way of their nodes. The room's loop owns it.
type reoffers struct {
	members *members
	teller  *teller
	peers   peerMap
	log     *slog.Logger
}

// ask asks the publisher for a new offer, if it is connected and had been sending the source.
func (o *reoffers) ask(s forward.Starved, now time.Time) {
	p, ok := o.peers[s.Publisher]
	if ok && p.place != nil {
		o.passOn(p, s, now)
		return
	}
	if !ok || p.connection == nil || !p.connected || !p.canPublish || !sources.MayPublish(p.sources, s.Source) {
		return
	}
	mids, upAt, sent := p.sending().Sending(s.Source)
	if len(mids) == 0 || now.Sub(upAt) < connectedFor || !sent && !s.Heard {
		return
	}
	if now.Sub(p.reofferedAt) >= reofferRest {
		p.reoffers = 0
	}
	if p.reoffers == maxReoffers || now.Sub(p.reofferedAt) < reofferEvery {
		return
	}
	p.reoffers++
	p.reofferedAt = now
	reason := reofferSilent
	switch {
	case s.LacksCodec:
		reason = reofferCodec
	case s.Heard:
		reason = reofferNoKeyframe
	case len(p.sending().Unplaced()) > 0:
		reason = reofferUnplaced
	}
	o.log.Warn("publisher asked for a new offer", "peer", string(p.id), "source", string(s.Source), "reason", reason, "mids", mids)
	o.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Mids: mids, Reason: reason}}})
}

// passOn has the node of a publisher ask it for a new offer. A picture that comes without a keyframe is not passed on: the link
// asks for keyframes, and may itself have lost them.
func (o *reoffers) passOn(p *peer, s forward.Starved, now time.Time) {
	if s.Heard && !s.LacksCodec || now.Sub(p.reofferedAt) < reofferEvery {
		return
	}
	p.reofferedAt = now
	o.members.tell(p.place, &control.LinkMessage{Message: &control.LinkMessage_Starved{Starved: &control.LinkStarved{
		Publisher: string(p.id), Source: sources.Proto(s.Source), LacksCodec: s.LacksCodec,
	}}})
}

// heed takes in what another node of the room says of a publisher that is not there.
func (o *reoffers) heed(from *member, told *control.LinkStarved) {
	p := o.peers[forward.PeerID(told.GetPublisher())]
	source, ok := sources.Of(told.GetSource())
	if p == nil || !ok || p.place == from {
		return
	}
	o.ask(forward.Starved{Publisher: p.id, Source: source, Heard: told.GetLacksCodec(), LacksCodec: told.GetLacksCodec()}, time.Now())
}
