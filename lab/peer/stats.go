package peer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// StreamID names what is received: one source of one person.
type StreamID struct {
	Peer   wire.PeerID
	Source wire.Source
}

// Stream counts what arrived of one source.
type Stream struct {
	Packets    uint64
	Bytes      uint64
	Last       time.Time     // of the last packet
	LongestGap time.Duration // between two packets
}

// Stats are what a peer has lived through.
type Stats struct {
	Joined      bool
	Peer        wire.PeerID
	Node        ring.NodeID
	Epoch       uint64
	Connections int              // peer connections made
	Restarts    []wire.Placement // one for each `restart` obeyed
	Resumes     int
	SocketsLost int
	Codes       map[wire.Code]int // errors the server sent
	Streams     map[StreamID]Stream
}

func newStats() Stats {
	return Stats{Codes: make(map[wire.Code]int), Streams: make(map[StreamID]Stream)}
}

// Stats returns a copy.
func (p *Peer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Restarts = slices.Clone(s.Restarts)
	s.Codes = maps.Clone(s.Codes)
	s.Streams = maps.Clone(s.Streams)
	return s
}

func (p *Peer) note(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

// received counts one packet for whoever the slot shows; what arrives before
// the slot table is not anybody's yet.
func (p *Peer) received(mid string, n int) {
	id, ok := p.table.shows(mid)
	if !ok {
		return
	}
	now := time.Now()
	p.note(func(s *Stats) {
		stream := s.Streams[id]
		if !stream.Last.IsZero() {
			stream.LongestGap = max(stream.LongestGap, now.Sub(stream.Last))
		}
		stream.Packets, stream.Bytes, stream.Last = stream.Packets+1, stream.Bytes+uint64(n), now
		s.Streams[id] = stream
	})
}

// slotTable is the latest table the server sent.
type slotTable struct {
	mu    sync.Mutex
	slots []wire.Slot // guarded by mu; replaced, never changed
}

func (t *slotTable) set(slots []wire.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots = slots
}

func (t *slotTable) get() []wire.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots
}

func (t *slotTable) shows(mid string) (StreamID, bool) {
	for _, slot := range t.get() {
		if slot.Mid == mid && slot.Peer != "" {
			return StreamID{Peer: slot.Peer, Source: slot.Source}, true
		}
	}
	return StreamID{}, false
}
