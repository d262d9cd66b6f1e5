package forward

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
	"github.com/holdfast-rtc/holdfast/sfu/forward/layerfilter"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"
	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"
)

// Codec is one of a negotiated m-line.
type Codec struct {
	// MimeType is as in SDP, for example "video/VP8", in any case.
	MimeType string
	// Fmtp is the value of a=fmtp.
	Fmtp        string
	ClockRate   uint32 // Hz
	PayloadType uint8
	// RTXPayloadType is read of slots only; 0 is no RTX.
	RTXPayloadType uint8
}

// PassedExtensions are the negotiated ids of header extensions that are passed on; 0 is none. An index means the same extension for
// the publisher and for the subscriber.
type PassedExtensions = parse.PassedExtensions

// LayerConfig describes one encoding of a publisher.
type LayerConfig struct {
	Peer   PeerID
	Source Source
	Kind   Kind
	// RID is empty without simulcast.
	RID string
	// SSRC is for logs only.
	SSRC uint32
	// Codec is the negotiated one. Packets of other payload types are refused.
	Codec Codec

	// REDPayloadType is that of redundant sound (RFC 2198); 0 is none.
	REDPayloadType uint8

	// AudioLevelExtensionID is the header extension's of RFC 6464; 0 is none.
	AudioLevelExtensionID uint8
	Passed                PassedExtensions

	// DescriptorID is the dependency descriptor's; 0 is none.
	DescriptorID uint8

	// SendPLI runs on the room's loop and must not block. Nil for audio.
	SendPLI func()

	// OnWanted is told whether anybody here wants the packets, on the room's loop, and must not block. Nobody wants a remote layer at
	// first. A layer of a publisher here is wanted at first, and always if it is the publication's lowest. It may be nil.
	OnWanted func(wanted bool)
	// Via makes a remote layer (see Layer.Tell), and is what brings it. Watchers compare it, so that no layer is sent back where it came
	// from.
	Via any

	// Gone is explained at Room.RemovePeer; it may be nil.
	Gone func() bool
}

// A layer without media for layerSilence is not alive. A browser that is short of bandwidth stops its highest layer, and its viewers then get
// another one.
const layerSilence = 1500 * time.Millisecond

// Layer is one encoding of a publisher. It is safe for concurrent use, but one goroutine calls Push.
type Layer struct {
	room  *Room
	cfg   LayerConfig
	codec parse.Codec
	ids   parse.ExtensionIDs

	// descriptors belong to the goroutine that calls Push.
	descriptors descriptor.Reader

	// queued counts the packets that wait for the loop.
	queued atomic.Int32

	// Who holds the room's turn owns the fields below.
	number  uint64
	format  string
	closed  bool
	tracker renumber.Tracker
	cache   packetCache
	clock   rtptime.StreamClock
	// peer is the publisher's clock; nil before takeLayer.
	peer *rtptime.PeerClock
	// timeline corrects sound.
	timeline rtptime.Timeline
	// transit measures the delay of pictures.
	transit  rtptime.Transit
	requests keyframeRequests
	// lastHeard is when the last packet with media came.
	lastHeard time.Time
	// height is that of the last keyframe; 0 is unknown.
	height int
	// slots are those that show the layer, and those that wait for its keyframe.
	slots []*Slot
	// frame has the packets of an unfinished frame.
	frame []*Packet
	rate  rateMeter
	// upper are the rates of the temporal layers above the lowest.
	upper     [parse.MaxTemporal]rateMeter
	described description

	// taps take the packets to other nodes.
	taps []Tap
	feed feed

	// shunnedUntil passes the layer over, because it made no keyframe.
	shunnedUntil time.Time
	packets      uint64
	keyframe     parse.KeyframeStarts
}

// Push takes a packet over. Sound of a small room has been forwarded when Push returns, unless somebody else had the turn. A full queue drops it (Drops.QueueFull).
func (l *Layer) Push(p *Packet) {
	r := l.room
	r.stats.packetsIn.Add(1)
	if err := p.parse(l.codec, &l.ids, &l.descriptors); err != nil {
		r.stats.malformed.Add(1)
		p.Release()
		return
	}
	if !l.acceptsPayload(p) {
		r.stats.malformed.Add(1)
		p.Release()
		return
	}
	p.layer, p.arrived = l, time.Now()
	// Sound that comes after queued sound is queued, too, so that it stays in order.
	if l.cfg.Kind == KindAudio && l.queued.Load() == 0 && r.forwardHere(p) {
		return
	}
	l.queued.Add(1)
	select {
	case r.packets <- p:
	default:
		l.queued.Add(-1)
		select {
		case <-r.done:
		default:
			r.stats.queueFull.Add(1)
		}
		p.Release()
	}
}

// acceptsPayload reports whether a packet has a payload type of the layer. It also parses redundancy.
func (l *Layer) acceptsPayload(p *Packet) (ok bool) {
	p.redundancy = parse.Redundancy{}
	switch {
	case p.header.PayloadType == l.cfg.Codec.PayloadType:
		return true
	case l.cfg.REDPayloadType == 0 || p.header.PayloadType != l.cfg.REDPayloadType:
		return false
	case p.empty():
		return true
	}
	p.redundancy, ok = parse.ReadRedundancy(p.payload(), l.cfg.Codec.PayloadType)
	return ok
}

// SenderReport does not block, and may drop the report.
func (l *Layer) SenderReport(ntp uint64, rtp uint32, arrived time.Time) {
	l.room.try(func() {
		if l.closed {
			return
		}
		for _, tap := range l.taps {
			tap.Report(ntp, rtp)
		}
		clock := l.room.members.clock(l.cfg.Peer)
		theirs := rtptime.FromNTP(ntp)
		if late, ok := clock.Observe(theirs, l.room.wall.At(arrived)); ok {
			clock.Path.Note(arrived, late)
		}
		l.applyReport(theirs.Add(clock.Offset), rtp, arrived)
	})
}

// applyReport adds to the timeline of sound what the publisher's report says that its timestamps lack.
func (l *Layer) applyReport(at time.Time, rtp uint32, arrived time.Time) {
	rtp = l.timeline.CorrectReport(arrived, rtp)
	if missing := at.Sub(l.clock.Sampled(rtp)); l.cfg.Kind == KindAudio && l.clock.Reported && missing >= rtptime.LeastReported {
		l.timeline.Add(missing, l.clock.Rate, l.tracker.Highest+1, arrived)
		rtp += rtptime.Ticks(missing, l.clock.Rate)
	}
	l.clock.Reported = true
	l.clock.Report(at, rtp)
}

// Close moves the slots to another layer of the source.
func (l *Layer) Close() { l.room.post(func() { l.room.dropLayer(l) }) }

func (l *Layer) receive(p *Packet) bool {
	sequence, ok := l.tracker.Extend(p.header.Sequence)
	if !ok {
		return false
	}
	p.sequence = sequence
	if !l.cache.put(p) {
		return false
	}
	l.packets++
	// Padding and old packets are no sign of life: browsers probe with those of a layer that they stopped.
	if sequence == l.tracker.Highest && !p.empty() {
		if !l.alive(p.arrived) {
			l.requests.unanswered = 0
		}
		l.lastHeard = p.arrived
		l.awake()
	}
	// The rate is for budgets, and narrow paths get no redundancy.
	l.rate.add(p.length - p.redundancy.Newest)
	changed := p.described && l.described.receive(p, sequence == l.tracker.Highest)
	if t := p.picture.Temporal; t > 0 {
		l.upper[t-1].add(p.length)
	}
	l.observeTiming(p, sequence == l.tracker.Highest && !p.empty())
	l.clock.Arrival(l.room.wall.At(p.arrived), p.header.Timestamp)
	if l.cfg.Kind == KindVideo && p.picture.Keyframe && !p.empty() {
		l.receiveKeyframe(p)
	}
	if changed {
		l.room.reselectAtKeyframe(l, p.arrived)
	}
	return true
}

func (l *Layer) receiveKeyframe(p *Packet) {
	if p.picture.Keyframe = l.keyframe.Begins(p.sequence, p.header.Timestamp, p.picture.Bare, p.arrived); !p.picture.Keyframe {
		return
	}
	l.requests.answered()
	l.shunnedUntil = time.Time{}
	if !p.described && l.described.structure != nil {
		l.described = description{arranged: l.described.arranged}
	}
	if p.picture.Height > 0 && p.picture.Height != l.height {
		l.height = p.picture.Height
		l.room.changed.layers = true
	}
}

// observeTiming corrects the timestamp of sound, and notes by pictures how late the publisher's packets are.
func (l *Layer) observeTiming(p *Packet, newest bool) {
	sound := l.cfg.Kind == KindAudio
	if newest && l.peer != nil {
		if sound {
			l.timeline.Observe(p.sequence, p.header.Timestamp, l.clock.Rate, p.arrived, &l.peer.Path)
		} else {
			l.peer.Path.Note(p.arrived, l.transit.Late(p.arrived, p.header.Timestamp, l.clock.Rate))
		}
	}
	if sound {
		p.header.Timestamp = l.timeline.Correct(p.sequence, p.header.Timestamp)
	}
}

func (l *Layer) forwardFrame() {
	if len(l.room.cfg.Batchers) > 0 {
		padToEqualLength(l.frame)
	}
	if l.sharded() {
		l.room.shards.forward(l, l.frame)
	} else {
		for _, s := range l.slots {
			for _, p := range l.frame {
				s.forwardPaced(p)
			}
		}
	}
	l.dropFrame()
}

// sharded reports whether several goroutines forward the layer.
func (l *Layer) sharded() bool { return len(l.room.cfg.Batchers) > 1 && len(l.slots) >= shardSlots }

// forwardSound forwards a packet of sound at once, and takes over the reference to it.
func (l *Layer) forwardSound(p *Packet) {
	if l.sharded() {
		l.room.shards.sound[0] = p
		l.room.shards.forward(l, l.room.shards.sound[:])
	} else {
		for _, s := range l.slots {
			s.forward(p)
		}
	}
	p.Release()
}

// padToEqualLength pads packets that are a little shorter than the longest one (RFC 3550 section 5.1), because the kernel cuts one message only
// into packets of equal length.
func padToEqualLength(held []*Packet) {
	longest := 0
	for _, p := range held {
		longest = max(longest, len(p.payload()))
	}
	for i, p := range held {
		missing := longest - len(p.payload())
		if missing > 0 && missing <= equalBytes && !p.empty() && i < len(held)-1 {
			p.padding = uint8(missing)
		}
	}
}

func (l *Layer) dropFrame() {
	for i, p := range l.frame {
		p.Release()
		l.frame[i] = nil
	}
	l.frame = l.frame[:0]
}

func (l *Layer) requestKeyframe(by *subscriber, now time.Time) {
	l.room.viewersWait = true
	if l.cfg.Kind == KindVideo && l.mayAskFor(by, now) && l.requests.request(now) {
		l.sendPLI()
	}
}

// mayAskFor reports whether the subscriber may ask for a keyframe. The request is taken off its budget, unless a keyframe comes anyway. A
// nil subscriber is another node, which has its own subscribers' budgets.
func (l *Layer) mayAskFor(by *subscriber, now time.Time) bool {
	return !l.requests.nothingOutstanding() || by == nil || by.mayAsk(l.cfg.key(), now)
}

func (l *Layer) sendPLI() {
	if l.cfg.SendPLI == nil {
		return
	}
	l.room.stats.keyframeRequests.Add(1)
	l.cfg.SendPLI()
}

func (l *Layer) tick(now time.Time) {
	l.cache.expire(now.Add(-cacheAge))
	l.expireWanted(now)
	l.expireWake(now)
	if l.cfg.Kind != KindVideo {
		return
	}
	waits := func(s *Slot) bool { return s.ready && (s.current != l || s.filter.targets.Waits(now)) }
	waiting := slices.ContainsFunc(l.slots, waits)
	again := waiting && now.Sub(l.requests.last) >= l.requests.retryAfter() &&
		slices.ContainsFunc(l.slots, func(s *Slot) bool { return waits(s) && l.mayAskFor(s.sub, now) })
	if l.requests.due(now) || again && l.requests.request(now) {
		l.sendPLI()
	}
	for _, s := range l.slots {
		if s.current == l && s.filter.temporal.Stuck(now, l.highestTemporal) {
			l.requestKeyframe(s.sub, now)
		}
	}
	l.room.viewersWait = l.room.viewersWait || waiting || l.requests.pending
}

func (l *Layer) measure(elapsed time.Duration) {
	l.rate.measure(elapsed)
	for i := range l.upper {
		l.upper[i].measure(elapsed)
	}
	l.described.measure(elapsed)
}

// alive: of a remote layer that nobody wants, its publisher's node knows, and a layer that rests comes when it is wanted.
func (l *Layer) alive(now time.Time) bool {
	return l.feed.state.Alive || now.Sub(l.lastHeard) < layerSilence
}

func (l *Layer) usable(now time.Time) bool { return l.alive(now) && !l.shunnedUntil.After(now) }

// bits returns the rate per second. It is assumed until it is measured.
func (l *Layer) bits() uint64 {
	if told := l.feed.state.BitsPerSecond; told > 0 && (!l.feed.wanted || !l.rate.known) {
		return told
	}
	if l.rate.known {
		return uint64(l.rate.bits)
	}
	if l.cfg.Kind == KindAudio {
		return 60_000
	}
	return uint64(l.lines()) * uint64(l.lines()) * assumedBits
}

// lines is the height of the picture, assumed until it is known.
func (l *Layer) lines() int { return cmp.Or(l.height, assumedHeight(l.cfg.RID)) }

// bitsUpTo returns the rate per second of the temporal layers up to one.
func (l *Layer) bitsUpTo(highest uint8) uint64 {
	bits := l.rate.bits
	for i := int(highest); i < len(l.upper); i++ {
		bits -= l.upper[i].bits
	}
	return uint64(max(bits, 0))
}

// highestTemporal returns the highest temporal layer that is worth leaving out; 0 if there is none.
func (l *Layer) highestTemporal() uint8 {
	for i := len(l.upper) - 1; i >= 0; i-- {
		if u := &l.upper[i]; u.known && u.bits > leastShare*l.rate.bits {
			return uint8(i + 1)
		}
	}
	return 0
}

func (l *Layer) appendChoices(to []layerChoice, now time.Time) []layerChoice {
	whole := layerChoice{layer: l, rid: l.cfg.RID, height: l.height, alive: l.usable(now), bits: l.bits(), spatial: layerfilter.AllSpatial, upTo: layerfilter.AllTemporal}
	d := &l.described
	if d.structure == nil || d.structure.SpatialLayers() == 1 || d.active == 0 {
		return append(to, whole)
	}
	for spatial := range uint8(d.structure.SpatialLayers()) {
		target, ok := d.target(spatial, layerfilter.AllTemporal)
		if !ok {
			continue
		}
		c := whole
		c.spatial = spatial
		if c.height = d.structure.Resolution(int(spatial)).Height; c.height == 0 {
			c.height = assumedHeight(c.rid) >> (d.structure.SpatialLayers() - 1 - int(spatial))
		}
		c.bits = uint64(c.height) * uint64(c.height) * assumedBits
		if d.rates[target].known {
			c.bits = uint64(d.rates[target].bits)
		}
		to = append(to, c)
	}
	return to
}

func (l *Layer) addSlot(s *Slot) {
	if !slices.Contains(l.slots, s) {
		l.slots = append(l.slots, s)
		l.noteWanted()
	}
}

func (l *Layer) removeSlot(s *Slot) {
	if i := slices.Index(l.slots, s); i >= 0 {
		l.slots = slices.Delete(l.slots, i, i+1)
		l.noteWanted()
	}
}
