package connection

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/reception"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// uplink sorts a client's packets by SSRC into layers (RFC 8843 section 9.2) and reports their reception.
type uplink struct {
	connection *Connection

	mu     sync.Mutex // guards the fields below
	closed bool
	// silenced is the set of sources that a moderator muted, as in control.Peer.
	silenced uint32
	ssrcs    ssrcTable
	// lines are the m-lines that the client publishes on, by mid.
	lines   map[string]*offer.Section
	streams map[uint32]*stream
	// unplaced counts by SSRC the packets that belong to no m-line.
	unplaced  map[uint32]*control.Stream
	reception *reception.Receiver
	// due is the RTCP of the last Tick, whose space the next one uses again.
	due []rtcp.Packet
	// tickAt is when the next Tick comes, zero for none.
	tickAt time.Time
	// began says that a stream has begun.
	began bool
	// reports says that the owner is told of new streams.
	reports bool
	// rests says that the client stops layers that nobody shows.
	rests bool
}

func newUplink(c *Connection) *uplink {
	return &uplink{
		connection: c, ssrcs: newSSRCTable(), lines: map[string]*offer.Section{}, streams: map[uint32]*stream{},
		unplaced: map[uint32]*control.Stream{}, reception: reception.New(rand.Uint32()),
	}
}

func (u *uplink) learn(message *control.Offer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ssrcs.learn(message.GetSenders())
	u.reports, u.rests = message.GetReportSenders(), message.GetRests()
}

// sending are the SSRCs of the streams that have begun.
func (u *uplink) sending() []*control.Sender {
	u.mu.Lock()
	defer u.mu.Unlock()
	var senders []*control.Sender
	for ssrc, s := range u.streams {
		sender := &control.Sender{Mid: s.mid, Source: sources.Proto(s.source), Rid: s.rid}
		switch {
		case s.replaced || s.original != nil && s.original.replaced:
			continue
		case s.original != nil:
			sender.RtxSsrc = ssrc
		default:
			sender.Ssrc = ssrc
		}
		senders = append(senders, sender)
	}
	return senders
}

// resting are the layers that need not come, or nil if the client would not stop any.
func (u *uplink) resting() *control.Rests {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.rests {
		return nil
	}
	byMid := map[string][]string{}
	for _, s := range u.streams {
		if s.resting.Load() && !s.replaced && s.original == nil {
			byMid[s.mid] = append(byMid[s.mid], s.rid)
		}
	}
	rests := &control.Rests{}
	for _, mid := range slices.Sorted(maps.Keys(byMid)) {
		slices.Sort(byMid[mid])
		rests.Resting = append(rests.Resting, &control.RestingLayers{Mid: mid, Rids: byMid[mid]})
	}
	return rests
}

// keep takes a new stream.
func (u *uplink) keep(s *stream) {
	u.streams[s.ssrc] = s
	if u.reports {
		u.connection.cfg.Owner.SendersChanged()
	}
}

// negotiated ends the streams of m-lines that no longer publish.
func (u *uplink) negotiated(o *offer.Offer) { closeLayers(u.renew(o)) }

// renew returns the layers of the ended streams.
func (u *uplink) renew(o *offer.Offer) (ended []*forward.Layer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.lines)
	clear(u.ssrcs.repairs)
	for i := range o.Sections {
		line := &o.Sections[i]
		u.ssrcs.learnExtensions(&line.Extensions)
		if !line.Publishes || !u.connection.granted.Load().publish {
			continue
		}
		u.lines[line.MID] = line
		u.ssrcs.declared(line)
	}
	for ssrc, s := range u.streams {
		line := u.lines[s.mid]
		if source, ok := u.connection.sourceOf(line); !ok || source != s.source {
			ended = append(ended, u.end(ssrc, s))
		}
	}
	return ended
}

// end forgets a stream and returns its layer, which may be nil. It needs mu.
func (u *uplink) end(ssrc uint32, s *stream) *forward.Layer {
	delete(u.streams, ssrc)
	u.reception.Remove(ssrc)
	return s.layer
}

func (u *uplink) close() { closeLayers(u.endAll()) }

func (u *uplink) endAll() (ended []*forward.Layer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for ssrc, s := range u.streams {
		ended = append(ended, u.end(ssrc, s))
	}
	return ended
}

// closeLayers may wait for the room, so the caller must not hold mu, which the socket's reader takes. Meanwhile a new layer of the same
// encoding may have been added: it replaces the old one, whose Close then does nothing.
func closeLayers(layers []*forward.Layer) {
	for _, l := range layers {
		if l != nil {
			l.Close()
		}
	}
}

// take hands a packet to the layer of its stream, and begins the layer with the first packet. A retransmission is handed over as the
// packet that it repeats. Of a muted source only the reception is noted. It needs mu.
func (u *uplink) take(s *stream, header *rtp.Header, packet []byte, arrived time.Time) {
	of := s
	if s.original != nil {
		of = s.original
	}
	if of.replaced {
		return
	}
	if s.original == nil && !s.carries(header.PayloadType) {
		u.recode(s, header, arrived)
	}
	silent := u.silenced&sources.Bit(of.source) != 0
	if !silent && !u.begin(of) {
		return
	}
	space := u.connection.cfg.Room.GetPacket()
	n := 0
	if s.original == nil {
		u.reception.Received(s.ssrc, header.SequenceNumber, header.Timestamp, arrived)
		n = copy(space.Buffer(), packet)
	} else if n = restore(space.Buffer(), packet, of); n > 0 {
		u.reception.Repaired(of.ssrc, binary.BigEndian.Uint16(space.Buffer()[2:]), arrived)
	}
	if n == 0 || silent || !of.pace.AllowN(arrived, 1) {
		space.Release()
		return
	}
	space.SetLength(n)
	of.layer.Push(space)
}

// begin makes sure that the stream has a layer of its present codec. It is false while the room is too busy to take one.
func (u *uplink) begin(s *stream) bool {
	if s.layer == nil || s.outdated {
		layer := u.connection.cfg.Room.AddLayer(s.config)
		if layer == nil {
			return false
		}
		s.layer, s.outdated = layer, false
		if s.resting.Swap(false) {
			u.connection.cfg.Owner.RestsChanged()
		}
		u.connection.cfg.Log.Debug("track published", "mid", s.mid, "source", s.source, "rid", s.rid, "codec", s.codec.MimeType, "ssrc", s.ssrc)
	}
	return true
}

// place finds out what a new SSRC is, and begins its stream. It is nil for an SSRC of which that is unknown, or that the client may not
// send. It needs mu.
func (u *uplink) place(header *rtp.Header) *stream {
	who, ok := u.ssrcs.identify(header)
	line := u.lines[who.mid]
	if !ok || line == nil {
		u.misplaced(header, "")
		return nil
	}
	source, ok := u.connection.sourceOf(line)
	if !ok {
		return nil
	}
	for _, codec := range line.Codecs {
		switch header.PayloadType {
		case codec.PayloadType:
			if codec.Name == offer.NameRED {
				if codec, ok = opusOf(line); !ok {
					return nil
				}
			}
			return u.add(&stream{identity: who, ssrc: header.SSRC, source: source, codec: codec}, line)
		case codec.RTXPayloadType:
			original := u.originalOf(header.SSRC, who)
			if original == nil {
				// Browsers probe a new path with retransmissions. They wait until the stream that they repeat has begun.
				return nil
			}
			s := &stream{identity: who, ssrc: header.SSRC, source: source, original: original}
			u.keep(s)
			return s
		}
	}
	u.misplaced(header, fmt.Sprintf("payload type %d", header.PayloadType))
	return nil
}

// originalOf returns the stream that an RTX SSRC repeats: as the offer says, or else the one of the same encoding.
func (u *uplink) originalOf(ssrc uint32, who identity) *stream {
	if original, ok := u.ssrcs.repairs[ssrc]; ok {
		return u.streams[original]
	}
	for _, s := range u.streams {
		if s.original == nil && !s.replaced && s.mid == who.mid && s.rid == who.rid {
			return s
		}
	}
	return nil
}

// add begins a stream, which replaces an older SSRC of the same encoding.
func (u *uplink) add(s *stream, line *offer.Section) *stream {
	for _, old := range u.streams {
		if old.original == nil && old.mid == s.mid && old.rid == s.rid {
			old.replaced = true
		}
	}
	kind := forwardKind(line)
	s.pace = newPace(kind)
	s.config = forward.LayerConfig{
		Peer: u.connection.cfg.Peer, Gone: u.connection.cfg.Owner.Gone, Source: s.source, Kind: kind, RID: s.rid, SSRC: s.ssrc, Codec: forwardCodec(s.codec),
		AudioLevelExtensionID: line.Extensions.AudioLevel, REDPayloadType: redOf(line), Passed: passedExtensions(line), DescriptorID: line.Extensions.DependencyDescriptor,
		SendPLI: func() { u.sendPLI(s.ssrc) },
	}
	if kind == forward.KindVideo && s.rid != "" && u.rests {
		s.config.OnWanted = func(wanted bool) {
			s.resting.Store(!wanted)
			u.connection.cfg.Owner.RestsChanged()
		}
	}
	u.keep(s)
	delete(u.unplaced, s.ssrc)
	u.reception.Add(s.ssrc, s.codec.ClockRate, repairOf(&s.codec))
	if !u.began {
		u.began = true
		u.connection.streamBegan(s.source)
	}
	return s
}

// misplaced counts a packet that belongs to no m-line. The transport bounds how many SSRCs a client has.
func (u *uplink) misplaced(header *rtp.Header, codec string) {
	s := u.unplaced[header.SSRC]
	if s == nil {
		s = &control.Stream{Ssrc: header.SSRC, Codec: codec}
		u.unplaced[header.SSRC] = s
	}
	s.Packets++
}

func (u *uplink) listUnplaced() []*control.Stream {
	u.mu.Lock()
	defer u.mu.Unlock()
	var streams []*control.Stream
	for _, s := range u.unplaced {
		streams = append(streams, &control.Stream{Ssrc: s.GetSsrc(), Packets: s.GetPackets(), Codec: s.GetCodec()})
	}
	slices.SortFunc(streams, func(a, b *control.Stream) int { return cmp.Compare(a.GetSsrc(), b.GetSsrc()) })
	return streams
}

// schedule asks the transport for a Tick when the next RTCP is due. It needs mu.
func (u *uplink) schedule() {
	next := u.reception.Next()
	if next.IsZero() || !u.tickAt.IsZero() && !next.Before(u.tickAt) {
		return
	}
	u.tickAt = next
	u.connection.conn.TickAt(next)
}

func (u *uplink) sendPLI(ssrc uint32) {
	// An error means that the transport is down, as in Tick.
	_ = u.connection.conn.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}})
}

func (u *uplink) senderReport(p *rtcp.SenderReport, arrived time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.streams[p.SSRC]
	if s == nil || s.layer == nil {
		return
	}
	u.reception.SenderReport(p.SSRC, p.NTPTime, arrived)
	s.layer.SenderReport(p.NTPTime, p.RTPTime, arrived)
}

func (u *uplink) roundTrip(rtt time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reception.RoundTrip(rtt)
}

// mute sets which sources are muted, and returns the layers that end by it. A screen is muted with its sound.
func (u *uplink) mute(muted uint32) (ended []*forward.Layer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if muted&sources.Bit(forward.SourceScreen) != 0 {
		muted |= sources.Bit(forward.SourceScreenAudio)
	}
	u.silenced = muted
	for _, s := range u.streams {
		if muted&sources.Bit(s.source) != 0 {
			ended = append(ended, s.layer)
			s.layer = nil
			if s.resting.Swap(false) {
				u.connection.cfg.Owner.RestsChanged()
			}
		}
	}
	return ended
}

const (
	// A client that alternates between codecs must not keep the room's loop busy.
	recodeEvery = time.Second
	// overtakenFor is how late a packet may come. In this time fewer numbers are used than half of their range, at wildVideoPerSecond.
	overtakenFor = 5 * time.Second
)

// recode follows a client that goes on with another codec of the m-line on the same SSRC: the stream gets another layer. A packet of
// the former codec that was overtaken by the change is no change back; the layer drops it. It needs mu.
func (u *uplink) recode(s *stream, header *rtp.Header, now time.Time) {
	// Before the first change recodedAt is zero, and the time since then is long.
	line, since := u.lines[s.mid], now.Sub(s.recodedAt)
	overtaken := since < overtakenFor && int16(header.SequenceNumber-s.recodedFrom) < 0
	if line == nil || since < recodeEvery || overtaken {
		return
	}
	i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.PayloadType == header.PayloadType && c.Name != offer.NameRED })
	if i < 0 {
		return
	}
	s.recodedAt, s.recodedFrom = now, header.SequenceNumber
	s.codec, s.outdated = line.Codecs[i], true
	s.config.Codec = forwardCodec(s.codec)
	u.reception.Add(s.ssrc, s.codec.ClockRate, repairOf(&s.codec))
}
