package peer

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// StreamID names one source of one peer.
type StreamID struct {
	Peer   wire.PeerID
	Source wire.Source
}

// Stream counts one source's packets.
type Stream struct {
	Packets    uint64
	Bytes      uint64    // of RTP, headers included
	Since      time.Time // first named by a slot table
	Last       time.Time
	LongestGap time.Duration   // between packets, while a slot showed it
	Moves      []time.Duration // pauses across connections, and across the nodes of one
	Connection int             // of the last packet, counted from 1
	Shown      bool            // in a slot now
	ShownSince time.Time

	hop   int    // of the last packet's connection
	fresh bool   // shown again: the next packet ends no gap
	table uint64 // the last slot table that named it
}

// GapUntil returns the longest time without a packet, counting an unfinished one until end.
func (s Stream) GapUntil(end time.Time) time.Duration {
	if !s.Shown {
		return s.LongestGap
	}
	return max(s.LongestGap, end.Sub(s.SilentSince()))
}

// SilentSince is the last packet's time; before the first, when a slot table named the stream.
func (s Stream) SilentSince() time.Time {
	if s.Packets == 0 {
		return s.Since
	}
	return s.Last
}

// ForgetGaps restarts LongestGap, and the count of KeyframesAsked. A gap that has begun counts whole.
func (p *Peer) ForgetGaps() {
	if p.send != nil {
		for _, v := range p.send.layers {
			v.asked.forget()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.streams {
		stream.LongestGap = 0
	}
}

// Shown returns the streams in the slots.
func (p *Peer) Shown() (self wire.PeerID, streams map[StreamID]Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	streams = make(map[StreamID]Stream, len(p.lines))
	for _, l := range p.lines {
		if l.stream != nil {
			streams[l.id] = l.stream.told()
		}
	}
	return p.stats.Peer, streams
}

// Stream returns one stream, shown or not.
func (p *Peer) Stream(id StreamID) Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stream := p.streams[id]; stream != nil {
		return stream.told()
	}
	return Stream{}
}

func (s *Stream) told() Stream {
	one := *s
	one.Moves = nil
	return one
}

// More counts in the totals only.
const (
	maxStreams = 1024
	maxMoves   = 64 // of one stream
)

// Traffic counts RTP packets and their bytes, headers included.
type Traffic struct{ Packets, Bytes uint64 }

// Add adds o.
func (t *Traffic) Add(o Traffic) { t.Packets, t.Bytes = t.Packets+o.Packets, t.Bytes+o.Bytes }

// Stats are a peer's counts.
type Stats struct {
	Began      time.Time // first socket opened
	JoinedAt   time.Time // first `joined`
	FirstMedia time.Time // first packet received
	FoundThere int       // others in the roster when it joined

	Joined         bool
	Peer           wire.PeerID
	Node           ring.NodeID
	Epoch          uint64
	Connections    int              // made so far
	Restarts       []wire.Placement // `restart` messages obeyed
	Resumes        int
	Attached       bool // joined, resumed or connected on an open socket
	SocketsLost    int
	OffersRejected int
	Codes          map[wire.Code]int // errors of the server
	Streams        map[StreamID]Stream

	Sent, Received Traffic
	Loss           Loss          // of all slots and connections
	SendLag        time.Duration // the largest
	FramesLeftOut  uint64        // too late
	KeyframesAsked int           // the most of one layer within a second
	Others         int           // in the roster that this peer was told
}

func newStats() Stats {
	return Stats{Codes: make(map[wire.Code]int)}
}

// Stats returns a copy.
func (p *Peer) Stats() Stats {
	s := p.Totals()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Streams = make(map[StreamID]Stream, len(p.streams))
	for id, stream := range p.streams {
		one := *stream
		one.Moves = slices.Clone(stream.Moves)
		s.Streams[id] = one
	}
	return s
}

// Totals returns Stats without the streams, cheaply.
func (p *Peer) Totals() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Restarts, s.Codes = slices.Clone(s.Restarts), maps.Clone(s.Codes)
	for _, l := range p.lines {
		s.Loss.Add(l.meter.total())
	}
	if p.send != nil {
		s.Sent, s.SendLag, s.FramesLeftOut = p.send.sent(), time.Duration(p.send.lag.Load()), p.send.leftOut.Load()
		for _, v := range p.send.layers {
			s.KeyframesAsked = max(s.KeyframesAsked, v.asked.mostInASecond())
		}
	}
	return s
}

func (p *Peer) note(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

func (s *sender) sent() Traffic {
	sum := s.audio.sent()
	for _, v := range s.layers {
		sum.Add(v.sent())
	}
	return sum
}

func (t *track) sent() Traffic { return Traffic{Packets: t.packets.Load(), Bytes: t.bytes.Load()} }
