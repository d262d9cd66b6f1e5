package forward

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"
)

// members are the publishers and subscribers of a room, and the layers that are published. The room's loop owns them.
type members struct {
	// layers are by the number that the segments of a slot's stream refer to.
	layers     map[uint64]*Layer
	lastNumber uint64
	// publications are in the order of arrival.
	publications []*publication
	sources      map[trackKey]*publication
	subscribers  map[PeerID]*subscriber
	clocks       map[PeerID]*rtptime.PeerClock
}

func newMembers() members {
	return members{
		layers:      make(map[uint64]*Layer),
		sources:     make(map[trackKey]*publication),
		subscribers: make(map[PeerID]*subscriber),
		clocks:      make(map[PeerID]*rtptime.PeerClock),
	}
}

func (m *members) subscriber(peer PeerID) *subscriber {
	sub := m.subscribers[peer]
	if sub == nil {
		sub = &subscriber{peer: peer, remembered: make(map[string]Entry), holds: make(map[trackKey]time.Time), asks: make(map[trackKey]keyframeBudget)}
		m.subscribers[peer] = sub
	}
	return sub
}

func (m *members) publication(key trackKey) *publication {
	p := m.sources[key]
	if p == nil {
		p = &publication{key: key}
		m.sources[key] = p
		m.publications = append(m.publications, p)
	}
	return p
}

// number gives a layer the number under which segments of a slot's stream refer to it.
func (m *members) number(l *Layer) {
	m.lastNumber++
	l.number = m.lastNumber
	m.layers[l.number] = l
}

// remove forgets a peer whose layers and slots were dropped, and the places that are held for it.
func (m *members) remove(peer PeerID) {
	delete(m.subscribers, peer)
	delete(m.clocks, peer)
	m.publications = slices.DeleteFunc(m.publications, func(p *publication) bool {
		if p.key.peer == peer {
			p.gone = true
			delete(m.sources, p.key)
		}
		return p.gone
	})
	for _, sub := range m.subscribers {
		sub.dropHolds(peer)
	}
}

func (m *members) clock(peer PeerID) *rtptime.PeerClock {
	c := m.clocks[peer]
	if c == nil {
		c = &rtptime.PeerClock{}
		m.clocks[peer] = c
	}
	return c
}

// shown returns the publication that a slot's entry names; nil if there is none. The slot keeps the pointer, because it is
// asked for at every change of the room.
func (m *members) shown(s *Slot) *publication {
	if s.entry.Peer == "" {
		return nil
	}
	if p := s.source; p == nil || p.gone {
		s.source = m.sources[s.entry.key()]
	}
	return s.source
}

// addSlot puts a slot in place of an older one of the same mid. A slot whose connection is gone by now is closed.
func (m *members) addSlot(s *Slot) {
	if s.closed {
		return
	}
	if s.cfg.Gone != nil && s.cfg.Gone() {
		s.close()
		return
	}
	sub := m.subscriber(s.cfg.Peer)
	s.sub = sub
	for _, old := range slices.Clone(sub.slots) {
		if old.cfg.Mid == s.cfg.Mid {
			old.close()
		}
	}
	sub.addSlot(s)
}
