package sfu

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Why a publisher is asked for a new offer, as the wire protocol says it.
const (
	reofferSilent     = "silent"
	reofferUnplaced   = "unplaced"
	reofferNoKeyframe = "no-keyframe"
	reofferCodec      = "codec"
)

const (
	// reofferEvery and maxReoffers bound what a publisher is asked, until it has not been asked for reofferRest: a camera
	// may have stopped for a reason that no offer mends.
	reofferEvery = 5 * time.Second
	maxReoffers  = 3
	reofferRest  = time.Minute
	// connectedFor is how long a publisher's transport must be up before its silence means anything.
	connectedFor = 2 * time.Second
)

// starved asks the publisher of a slot that has no picture for a new offer, if its connection is up and it had been sending
// that source when it came. It is forward's OnStarved: it must not block.
func (r *room) starved(s forward.Starved) {
	select {
	case r.tasks <- func() { r.reoffer(s, time.Now()) }:
	default: // The room's loop is busy; it is told again in 5 s.
	}
}

// reoffer does it on the room's loop.
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

// sending says on which m-lines the client sends a source, since when its transport has been up, and whether it named an
// SSRC: then it had been sending before its last offer.
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
