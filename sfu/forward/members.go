package forward

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

const maxRemembered = 256

func (r *Room) subscriber(peer PeerID) *subscriber {
	sub := r.subscribers[peer]
	if sub == nil {
		sub = &subscriber{peer: peer, remembered: make(map[string]Entry), holds: make(map[trackKey]time.Time), asks: make(map[trackKey]keyframeBudget)}
		r.subscribers[peer] = sub
	}
	return sub
}

func (r *Room) publication(key trackKey) *publication {
	p := r.sources[key]
	if p == nil {
		p = &publication{key: key}
		r.sources[key] = p
		r.publications = append(r.publications, p)
	}
	return p
}

func (r *Room) dropPublications(peer PeerID) {
	r.publications = slices.DeleteFunc(r.publications, func(p *publication) bool {
		if p.key.peer == peer {
			p.gone = true
			delete(r.sources, p.key)
		}
		return p.gone
	})
}

func (r *Room) clock(peer PeerID) *peerClock {
	c := r.clocks[peer]
	if c == nil {
		c = &peerClock{}
		r.clocks[peer] = c
	}
	return c
}

func (r *Room) takeLayer(l *Layer) {
	if l.closed || l.number != 0 {
		return
	}
	if l.cfg.Gone != nil && l.cfg.Gone() {
		r.dropLayer(l)
		return
	}
	r.lastNumber++
	l.number = r.lastNumber
	l.lastHeard = time.Now()
	l.peer = r.clock(l.cfg.Peer)
	l.format = parse.FormatOf(l.cfg.Codec.MimeType, l.cfg.Codec.Fmtp)
	pub := r.publication(l.cfg.key())
	for _, old := range slices.Clone(pub.layers) {
		if old.cfg.RID == l.cfg.RID {
			r.dropLayer(old)
		}
	}
	pub.kind = l.cfg.Kind
	pub.layers = append(pub.layers, l)
	r.layers[l.number] = l
	r.tablesChanged = true
}

func (r *Room) dropLayer(l *Layer) {
	if l.closed {
		return
	}
	l.closed = true
	delete(r.layers, l.number)
	r.holding.remove(l)
	l.dropHeld()
	l.cache.clear()
	for _, s := range l.slots {
		if s.current == l {
			s.current = nil
		}
		if s.target == l {
			s.target = nil
		}
	}
	l.slots = nil
	r.tablesChanged = true
	pub := r.sources[l.cfg.key()]
	if pub == nil || !slices.Contains(pub.layers, l) {
		return
	}
	pub.layers = slices.DeleteFunc(pub.layers, func(other *Layer) bool { return other == l })
	if len(pub.layers) > 0 {
		return
	}
	until := time.Now().Add(holdGone)
	for _, sub := range r.subscribers {
		if sub.shows(pub.key) {
			sub.holds[pub.key] = until
		}
	}
}

func (r *Room) takeSlot(s *Slot) {
	if s.closed {
		return
	}
	if s.cfg.Gone != nil && s.cfg.Gone() {
		r.dropSlot(s)
		return
	}
	sub := r.subscriber(s.cfg.Peer)
	s.sub = sub
	for _, old := range slices.Clone(sub.slots) {
		if old.cfg.Mid == s.cfg.Mid {
			r.dropSlot(old)
		}
	}
	s.entry = Entry{Mid: s.cfg.Mid, Kind: s.cfg.Kind}
	if e, ok := sub.remembered[s.cfg.Mid]; ok && e.Kind == s.cfg.Kind {
		s.entry = e
		s.entry.Paused = false
	}
	delete(sub.remembered, s.cfg.Mid)
	s.formats = formats(s.cfg.Codecs)
	if s.cfg.Path != nil {
		sub.budget = s.cfg.Path.Target()
	}
	sub.slots = append(sub.slots, s)
	group := sub.group(s.cfg.Kind)
	group.slots = append(group.slots, s)
	sub.join(s)
	sub.changed = true
}

func (r *Room) dropSlot(s *Slot) {
	if s.closed {
		return
	}
	s.closed = true
	s.ready = false
	for _, l := range []*Layer{s.target, s.current} {
		if l != nil {
			l.removeSlot(s)
		}
	}
	s.target, s.current = nil, nil
	s.rewriter.sent = nil
	sub := s.sub
	if sub == nil {
		return
	}
	i := slices.Index(sub.slots, s)
	if i < 0 {
		return
	}
	sub.slots = slices.Delete(sub.slots, i, i+1)
	group := sub.group(s.cfg.Kind)
	group.slots = slices.DeleteFunc(group.slots, func(other *Slot) bool { return other == s })
	if s.beside != nil {
		s.beside.beside, s.beside = nil, nil
	}
	if len(sub.remembered) < maxRemembered {
		sub.remembered[s.cfg.Mid] = s.entry
	}
	sub.changed = true
}

// hold takes over the reference.
func (r *Room) hold(p *Packet) {
	l := p.layer
	if l.cfg.Kind != KindVideo {
		for _, s := range l.slots {
			s.forward(p)
		}
		p.Release()
		return
	}
	l.held = append(l.held, p)
	switch {
	case p.header.Marker || len(l.held) == holdPackets:
		l.forwardHeld()
		r.holding.remove(l)
	case len(l.held) == 1:
		r.holding.layers = append(r.holding.layers, l)
		if len(r.holding.layers) == 1 {
			r.holding.timer.Reset(holdTime)
		}
	}
}

func (r *Room) letGo(now time.Time) {
	h := &r.holding
	for len(h.layers) > 0 {
		l := h.layers[0]
		if wait := holdTime - now.Sub(l.held[0].arrived); wait > 0 {
			h.timer.Reset(wait)
			return
		}
		r.handling = l
		l.forwardHeld()
		h.remove(l)
	}
}

func (r *Room) expireHolds(now time.Time) {
	for _, sub := range r.subscribers {
		before := len(sub.holds)
		maps.DeleteFunc(sub.holds, func(_ trackKey, until time.Time) bool { return !until.After(now) })
		if len(sub.holds) != before {
			sub.changed = true
		}
	}
}

// rearrange chooses layers while the keyframe is at hand.
func (r *Room) rearrange(l *Layer, now time.Time) {
	r.layersChanged = true
	if now.Sub(l.described.arranged) >= r.cfg.MinPLIInterval {
		l.described.arranged = now
		r.arrange(now)
	}
}
