package forward

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

// Codec is one codec of a negotiated media section.
type Codec struct {
	MimeType       string // "video/VP8", compared without case
	Fmtp           string // a=fmtp parameters; H264 matches by packetization-mode and profile
	ClockRate      uint32 // Hz
	PayloadType    uint8
	RTXPayloadType uint8 // 0: this codec has no RTX (of slots only; a publisher's RTX is undone before it comes here)
}

// LayerConfig describes one encoding that a publisher sends.
type LayerConfig struct {
	Peer   PeerID
	Source Source
	Kind   Kind
	RID    string // empty without simulcast
	SSRC   uint32 // for logs
	Codec  Codec  // what its packets carry; a packet with another payload type is ignored

	// REDPayloadType is that of packets that carry the codec's in the form of RFC 2198, 0 when there are none.
	REDPayloadType uint8

	// AudioLevelExtensionID is the negotiated id of RFC 6464's extension, 0 when there is none.
	AudioLevelExtensionID uint8
	Passed                PassedExtensions

	// DescriptorID is the negotiated id of the dependency descriptor, 0 for none. Packets that have one are forwarded by it.
	DescriptorID uint8

	// SendPLI asks the publisher for a keyframe of this layer. It is called on
	// the room's loop and must not block. Nil for audio.
	SendPLI func()
}

func (c *LayerConfig) key() trackKey { return trackKey{peer: c.Peer, source: c.Source} }

// layerSilence is how long a layer may send nothing before viewers are given
// another one. A browser that runs out of bandwidth stops its highest layer
// without a word.
const layerSilence = 1500 * time.Millisecond

// Layer is one encoding that a publisher sends. Its methods are safe for
// concurrent use; packets of one layer must be pushed by one goroutine.
type Layer struct {
	room  *Room
	cfg   LayerConfig
	codec codec

	descriptors descriptor.Reader // belongs to Push

	// The fields below belong to the room's loop.
	number    uint64 // never used twice in a room
	format    string // of cfg.Codec
	closed    bool
	tracker   sequenceTracker
	cache     packetCache
	clock     layerClock
	requests  keyframeRequests
	lastHeard time.Time // arrival of the newest packet of media, or the layer's beginning
	height    int       // from keyframes, 0 when unknown
	slots     []*Slot   // that show this layer or wait for its keyframe
	held      []*Packet // of a frame whose last packet has not come
	rate      rateMeter
	upper     [maxTemporal]rateMeter // of its temporal layers above the lowest
	described description            // by dependency descriptors

	shunnedUntil time.Time // it made no keyframe when it was asked
	packets      uint64    // received, duplicates not counted
	keyframes    uint64    // begun
	keyframe     uint32    // extended sequence number at which the newest keyframe began, 0: none
	keyframeAt   time.Time
}

// Push hands a packet over to the room, which releases it; the caller must not
// touch it again. When the room's queue is full the packet is dropped and
// counted (Stats.Drops.QueueFull), so that a reader is never held up.
func (l *Layer) Push(p *Packet) {
	r := l.room
	r.stats.packetsIn.Add(1)
	if err := p.parse(l.codec, &extensionIDs{l.cfg.AudioLevelExtensionID, l.cfg.Passed, l.cfg.DescriptorID}, &l.descriptors); err != nil {
		r.stats.malformed.Add(1)
		p.Release()
		return
	}
	if !l.takes(p) {
		p.Release()
		return
	}
	p.layer, p.arrived = l, time.Now()
	select {
	case r.packets <- p:
	default:
		select {
		case <-r.done: // there is nobody left to forward it to
		default:
			r.stats.queueFull.Add(1)
		}
		p.Release()
	}
}

// SenderReport records how the publisher's clock and its RTP timestamps belong
// together, from an RTCP sender report for this layer's SSRC. It does not block: another one comes soon.
func (l *Layer) SenderReport(ntp uint64, rtp uint32, arrived time.Time) {
	l.room.try(func() {
		if l.closed {
			return
		}
		clock := l.room.clock(l.cfg.Peer)
		theirs := fromNTPTime(ntp)
		clock.observe(theirs, arrived)
		l.clock.report(theirs.Add(clock.offset), rtp)
	})
}

// Close takes the layer away; slots that show it fall to another layer of its
// source, or go quiet.
func (l *Layer) Close() { l.room.post(func() { l.room.dropLayer(l) }) }

// receive places one packet in the layer's stream. It returns false for what is
// not to be forwarded: a duplicate, or far too late.
func (l *Layer) receive(p *Packet) bool {
	sequence, ok := l.tracker.extend(p.header.sequence)
	if !ok {
		return false
	}
	p.sequence = sequence
	if !l.cache.put(p) {
		return false
	}
	l.packets++
	// A browser that has stopped a layer goes on probing with padding and with old packets of it.
	if sequence == l.tracker.highest && !p.empty() {
		if !l.alive(p.arrived) {
			l.requests.unanswered = 0 // It is worth asking again soon.
		}
		l.lastHeard = p.arrived
	}
	l.rate.add(p.length - p.redundancy.newest) // A narrow path is not sent what is repeated.
	changed := p.described && l.described.receive(p, sequence == l.tracker.highest)
	if t := p.picture.temporal; t > 0 {
		l.upper[t-1].add(p.length)
	}
	l.clock.arrival(p.arrived, p.header.timestamp)
	if l.cfg.Kind == KindVideo && p.picture.keyframe && !p.empty() {
		l.requests.arrived()
		l.shunnedUntil = time.Time{}
		if !p.described && l.described.structure != nil {
			l.described = description{arranged: l.described.arranged}
		}
		if sequence > l.keyframe {
			l.keyframe, l.keyframeAt = sequence, p.arrived
			l.keyframes++
		}
		if p.picture.height > 0 && p.picture.height != l.height {
			l.height = p.picture.height
			l.room.layersChanged = true
		}
	}
	if changed {
		l.room.rearrange(l, p.arrived)
	}
	return true
}

// requestKeyframe asks the publisher, now or when the interval is over.
func (l *Layer) requestKeyframe(now time.Time) {
	l.room.restless = true
	if l.cfg.Kind == KindVideo && l.requests.request(now) {
		l.sendPLI()
	}
}

func (l *Layer) sendPLI() {
	if l.cfg.SendPLI == nil {
		return
	}
	l.room.stats.keyframeRequests.Add(1)
	l.cfg.SendPLI()
}

// tick makes requests that were kept, and repeats those that were not answered.
func (l *Layer) tick(now time.Time) {
	l.cache.expire(now.Add(-cacheAge))
	if l.cfg.Kind != KindVideo {
		return
	}
	waiting := slices.ContainsFunc(l.slots, func(s *Slot) bool { return s.ready && (s.current != l || s.targeting.waits(now)) })
	if l.requests.due(now) || waiting && now.Sub(l.requests.last) >= l.requests.patience() && l.requests.request(now) {
		l.sendPLI()
	}
	for _, s := range l.slots {
		if s.current == l && s.temporal.stuck(l, now) {
			l.requestKeyframe(now)
		}
	}
	l.room.restless = l.room.restless || waiting || l.requests.pending
}

func (l *Layer) measure(elapsed time.Duration) {
	l.rate.measure(elapsed)
	for i := range l.upper {
		l.upper[i].measure(elapsed)
	}
	l.described.measure(elapsed)
}

func (l *Layer) alive(now time.Time) bool { return now.Sub(l.lastHeard) < layerSilence }

func (l *Layer) addSlot(s *Slot) {
	if !slices.Contains(l.slots, s) {
		l.slots = append(l.slots, s)
	}
}

func (l *Layer) removeSlot(s *Slot) {
	if i := slices.Index(l.slots, s); i >= 0 {
		l.slots = slices.Delete(l.slots, i, i+1)
	}
}
