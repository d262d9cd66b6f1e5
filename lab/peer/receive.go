package peer

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type arrival struct {
	at            time.Time
	mid           string
	connection    int // counted from 1
	hop           int // of the connection: how many nodes have handed it on
	number        uint16
	bytes         int
	media         bool // more than padding
	retransmitted bool // by RTX
}

func (c *connection) rtp(b []byte, hop int, now time.Time) {
	keys := c.keys.Load()
	if keys == nil {
		return
	}
	var header rtp.Header
	size, err := header.Unmarshal(b)
	if err != nil {
		return
	}
	stream, known := c.remote.streams[header.SSRC]
	if c.plain, err = keys.DecryptRTP(c.plain[:0], b, &header); err != nil || !known {
		return
	}
	if number := header.GetExtension(transportID); c.stack.simulcast() && len(number) == 2 {
		c.receiver.Transport(binary.BigEndian.Uint16(number), header.SSRC, now)
	}
	payload := c.plain[size:]
	if header.Padding && len(payload) > 0 {
		payload = payload[:max(len(payload)-int(payload[len(payload)-1]), 0)]
	}
	a := arrival{at: now, mid: stream.mid, hop: hop, number: header.SequenceNumber, bytes: len(c.plain), media: len(payload) > 0}
	if stream.repairs == 0 {
		if c.payload != nil && a.media {
			c.payload(stream.audio, payload)
		}
		c.receiver.Received(header.SSRC, header.SequenceNumber, header.Timestamp, now)
		c.arrived(a)
		return
	}
	if len(payload) < 2 {
		return // a probe
	}
	a.number, a.retransmitted, a.media = binary.BigEndian.Uint16(payload), true, len(payload) > 2
	if c.receiver.Repaired(stream.repairs, a.number, now) {
		c.arrived(a)
	}
}

func (c *connection) rtcp(b []byte, now time.Time) {
	keys := c.keys.Load()
	if keys == nil {
		return
	}
	plain, err := keys.DecryptRTCP(nil, b, nil)
	if err != nil {
		return
	}
	packets, err := rtcp.Unmarshal(plain)
	if err != nil {
		return
	}
	for _, packet := range packets {
		switch p := packet.(type) {
		case *rtcp.PictureLossIndication:
			c.askedForKeyframe(p.MediaSSRC)
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR {
				c.askedForKeyframe(entry.SSRC)
			}
		case *rtcp.TransportLayerNack:
			c.askedAgain(p)
		case *rtcp.SenderReport:
			c.receiver.SenderReport(p.SSRC, p.NTPTime, now)
		default:
		}
	}
}

func (c *connection) askedForKeyframe(ssrc uint32) {
	for _, s := range c.camera {
		if s.ssrc == ssrc {
			s.wantKeyframe.Store(true)
			s.asked.once(time.Now())
		}
	}
}

func (c *connection) askedAgain(nack *rtcp.TransportLayerNack) {
	for _, s := range c.camera {
		if s.ssrc != nack.MediaSSRC {
			continue
		}
		for _, pair := range nack.Nacks {
			for _, number := range pair.PacketList() {
				s.again(number)
			}
		}
	}
}

// Packets before the slot table belong to no stream.
func (p *Peer) arrived(a arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Received.Packets++
	p.stats.Received.Bytes += uint64(a.bytes)
	line := p.line(a.mid)
	if a.connection == p.stats.Connections {
		line.meter.add(a.number, a.retransmitted)
	}
	if !a.media {
		return
	}
	if p.stats.FirstMedia.IsZero() {
		p.stats.FirstMedia = a.at
	}
	if p.live.still(a) {
		return
	}
	if line.stream == nil {
		return
	}
	moved := line.stream.arrived(a)
	if moved > 0 {
		p.movedWith(moved)
	}
	if p.soundIsBack(line.id, a) || moved > 0 {
		p.observe(Moment{At: a.at, Step: StepFirst, Connection: a.connection, Hop: a.hop, Epoch: p.stats.Epoch, Stream: line.id})
	}
}

// soundIsBack reports the first audio on a newer connection or from its next node, of any peer: not everybody has a slot. p.mu must be held.
func (p *Peer) soundIsBack(id StreamID, a arrival) bool {
	on := way{a.connection, a.hop}
	if id.Source != wire.SourceMicrophone || !on.after(p.heardOn) {
		return false
	}
	first := p.heardOn == way{}
	p.heardOn = on
	return !first
}

// way is a connection to one of the nodes that it had.
type way struct{ connection, hop int }

func (w way) after(o way) bool {
	return w.connection > o.connection || w.connection == o.connection && w.hop > o.hop
}

type line struct {
	meter  sequence // of the present connection
	id     StreamID
	stream *Stream
}

// p.mu must be held.
func (p *Peer) line(mid string) *line {
	l := p.lines[mid]
	if l == nil {
		l = &line{}
		p.lines[mid] = l
	}
	return l
}

// moved is the pause before the first packet of a newer connection, or of its next node, else 0.
func (s *Stream) arrived(a arrival) (moved time.Duration) {
	before, now := way{s.Connection, s.hop}, way{a.connection, a.hop}
	if before.after(now) {
		return 0 // of the connection that a live move has left, or of a node that a connection has left
	}
	// A new node may show a stream a moment later than the others.
	if s.Packets > 0 && (!s.fresh || now.after(before)) {
		gap := a.at.Sub(s.Last)
		s.LongestGap = max(s.LongestGap, gap)
		if now.after(before) {
			moved = gap
			if len(s.Moves) < maxMoves {
				s.Moves = append(s.Moves, gap)
			}
		}
	}
	s.fresh = false
	s.Packets, s.Bytes, s.Last = s.Packets+1, s.Bytes+uint64(a.bytes), a.at
	s.Connection, s.hop = a.connection, a.hop
	return moved
}

// A hidden stream has no gap, unless the connection or its node changes meanwhile.
func (p *Peer) show(slots []wire.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.slots, p.tables = slots, p.tables+1
	hidden := make([]*Stream, 0, len(p.lines))
	for _, l := range p.lines {
		if l.stream != nil {
			hidden, l.stream = append(hidden, l.stream), nil
		}
	}
	for _, slot := range slots {
		if l := p.line(slot.Mid); slot.Peer != "" && l.stream == nil {
			l.id = StreamID{Peer: slot.Peer, Source: slot.Source}
			l.stream = p.named(l.id, now)
		}
	}
	for _, stream := range hidden {
		stream.Shown = stream.table == p.tables
	}
}

// named returns a slot's stream, nil past maxStreams. p.mu must be held.
func (p *Peer) named(id StreamID, now time.Time) *Stream {
	stream := p.streams[id]
	switch {
	case stream == nil && len(p.streams) == maxStreams:
		return nil
	case stream == nil:
		stream = &Stream{Since: now, ShownSince: now}
		p.streams[id] = stream
	case !stream.Shown:
		stream.fresh, stream.ShownSince = stream.Connection == p.stats.Connections, now
	}
	stream.Shown, stream.table = true, p.tables
	return stream
}

func (p *Peer) table() []wire.Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots
}

// movedWith reports, once a restart, that media flows again. p.mu must be held.
func (p *Peer) movedWith(gap time.Duration) {
	if !p.moving || !p.live.whole(gap, p.stats.Connections) {
		return
	}
	p.moving = false
	migrated := &wire.Migrated{How: wire.HowNewConnection, GapMs: uint64(gap.Milliseconds())}
	if p.live != nil {
		migrated.How, migrated.GapMs = wire.HowLive, uint64(p.live.gap.Milliseconds())
	}
	select {
	case p.moved <- migrated:
	default: // one is still unreported
	}
}

func (p *Peer) nextConnection() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		p.stats.Loss.Add(l.meter.total())
		l.meter = sequence{}
	}
	p.stats.Connections++
	return p.stats.Connections
}

func (p *Peer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats.Connections
}
