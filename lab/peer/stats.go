package peer

import (
	"maps"
	"slices"
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
	Bytes      uint64          // of RTP, headers included
	Since      time.Time       // when the slot table first named it
	Last       time.Time       // of the last packet
	LongestGap time.Duration   // between two packets, while a slot showed it
	Moves      []time.Duration // from the last packet of an old connection to the first of a new one
	Connection int             // the last packet's, counted from 1
	Shown      bool            // a slot shows it now
	ShownSince time.Time       // when a slot began to show it, the last time

	fresh bool   // it was hidden for a while: the next packet ends no gap
	table uint64 // the number of the last slot table that named it
}

// GapUntil is the longest time without a packet, an unfinished one until end included.
func (s Stream) GapUntil(end time.Time) time.Duration {
	if !s.Shown {
		return s.LongestGap
	}
	return max(s.LongestGap, end.Sub(s.SilentSince()))
}

// SilentSince is when the last packet came; before the first one, when a slot table named the stream.
func (s Stream) SilentSince() time.Time {
	if s.Packets == 0 {
		return s.Since
	}
	return s.Last
}

// ForgetGaps restarts LongestGap, without the disturbance of a join. A gap that has begun counts whole.
func (p *Peer) ForgetGaps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.streams {
		stream.LongestGap = 0
	}
}

// Shown returns what the slots show now, cheaply.
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

// told is a copy without Moves, which goes on growing.
func (s *Stream) told() Stream {
	one := *s
	one.Moves = nil
	return one
}

// Bounds of a peer's memory; more counts in the totals only.
const (
	maxStreams = 1024
	maxMoves   = 64 // of one stream
)

// Traffic counts RTP packets and their bytes, headers included.
type Traffic struct{ Packets, Bytes uint64 }

// Add sums up.
func (t *Traffic) Add(o Traffic) { t.Packets, t.Bytes = t.Packets+o.Packets, t.Bytes+o.Bytes }

// Stats are what a peer has lived through.
type Stats struct {
	Began      time.Time // when its first socket was opened
	JoinedAt   time.Time // when the first `joined` came
	FirstMedia time.Time // when the first packet of somebody else came
	FoundThere int       // how many others were in the room's roster when it joined

	Joined         bool
	Peer           wire.PeerID
	Node           ring.NodeID
	Epoch          uint64
	Connections    int              // peer connections made
	Restarts       []wire.Placement // one for each `restart` obeyed
	Resumes        int
	Attached       bool // a socket is open, and the server knows who it is
	SocketsLost    int
	OffersRejected int
	Codes          map[wire.Code]int // errors the server sent
	Streams        map[StreamID]Stream

	Sent, Received Traffic
	Loss           Loss          // of all slots, over all connections
	SendLag        time.Duration // how late the sender was, the most: its own machine's fault
	FramesLeftOut  uint64        // by the sender, because it was too late for them
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

// Totals are Stats without the streams. It copies little, for frequent calls.
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
