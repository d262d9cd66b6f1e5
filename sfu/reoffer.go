package sfu

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Words of the wire protocol.
const (
	reofferSilent     = "silent"
	reofferUnplaced   = "unplaced"
	reofferNoKeyframe = "no-keyframe"
	reofferCodec      = "codec"
)

const (
	// Until reofferRest has passed without a request: a camera may have stopped for a reason that no offer mends.
	reofferEvery = 5 * time.Second
	maxReoffers  = 3
	reofferRest  = time.Minute
	// Silence right after DTLS means nothing.
	connectedFor = 2 * time.Second
)

// starved asks the publisher of a missing picture for a new offer, if it is connected and used to send the source. It
// is forward's OnStarved and must not block.
func (r *room) starved(s forward.Starved) {
	select {
	case r.tasks <- func() { r.reoffer(s, time.Now()) }:
	default: // busy; told again in 5 s
	}
}

func (r *room) reoffer(s forward.Starved, now time.Time) {
	p, ok := r.peers[s.Publisher]
	if !ok || p.connection == nil || !p.connected || !p.canPublish || !mayPublish(p.sources, s.Source) {
		return
	}
	mids, upAt, sent := p.connection.sending(s.Source)
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
	case len(p.connection.uplink.homeless()) > 0:
		reason = reofferUnplaced
	}
	r.log.Warn("publisher asked for a new offer", "peer", string(p.id), "source", string(s.Source), "reason", reason, "mids", mids)
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Mids: mids, Reason: reason}}})
}

// sending returns a source's m-lines, since when the transport is up, and whether the offer named an SSRC: then the
// client had been sending before.
func (c *connection) sending(source forward.Source) (mids []string, upAt time.Time, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for mid, s := range c.sources {
		if s == source {
			mids = append(mids, mid)
		}
	}
	slices.Sort(mids)
	return mids, c.upAt, c.sent[source]
}
