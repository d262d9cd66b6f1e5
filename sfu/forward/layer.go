package forward

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

// Codec is one of a negotiated m-line.
type Codec struct {
	MimeType       string // "video/VP8", in any case
	Fmtp           string // a=fmtp
	ClockRate      uint32 // Hz
	PayloadType    uint8
	RTXPayloadType uint8 // of slots; 0: no RTX
}

// LayerConfig describes one encoding of a publisher.
type LayerConfig struct {
	Peer   PeerID
	Source Source
	Kind   Kind
	RID    string // or empty
	SSRC   uint32 // for logs
	Codec  Codec  // others are ignored

	// REDPayloadType is of RFC 2198; 0: none.
	REDPayloadType uint8

	// AudioLevelExtensionID is of RFC 6464; 0: none.
	AudioLevelExtensionID uint8
	Passed                PassedExtensions

	// DescriptorID is the dependency descriptor's; 0: none.
	DescriptorID uint8

	// SendPLI runs on the room's loop and must not block. Nil for audio.
	SendPLI func()

	Gone func() bool // see RemovePeer; may be nil
}

func (c *LayerConfig) key() trackKey { return trackKey{peer: c.Peer, source: c.Source} }

// A browser short of bandwidth stops its highest layer; viewers then get another.
const layerSilence = 1500 * time.Millisecond

// Layer is one encoding of a publisher. It is safe for concurrent use, but one goroutine calls Push.
type Layer struct {
	room  *Room
	cfg   LayerConfig
	codec codec

	descriptors descriptor.Reader // of Push

	// The room's loop owns the fields below.
	number    uint64
	format    string
	closed    bool
	tracker   sequenceTracker
	cache     packetCache
	clock     layerClock
	peer      *peerClock // the publisher's; nil before takeLayer
	timeline  timeline   // of sound
	transit   transit    // of pictures
	requests  keyframeRequests
	lastHeard time.Time // with media
	height    int       // of a keyframe, 0 unknown
	slots     []*Slot   // also those waiting for its keyframe
	held      []*Packet // of an unfinished frame
	rate      rateMeter
	upper     [maxTemporal]rateMeter // above the lowest temporal layer
	described description

	shunnedUntil time.Time // it made no keyframe
	packets      uint64
	keyframe     keyframes
}

// Push takes a packet over. A full queue drops it (Drops.QueueFull).
func (l *Layer) Push(p *Packet) {
	r := l.room
	r.stats.packetsIn.Add(1)
	if err := p.parse(l.codec, &extensionIDs{l.cfg.AudioLevelExtensionID, l.cfg.Passed, l.cfg.DescriptorID}, &l.descriptors); err != nil {
		r.stats.malformed.Add(1)
		p.Release()
		return
	}
	if !l.takes(p) {
		r.stats.malformed.Add(1)
		p.Release()
		return
	}
	p.layer, p.arrived = l, time.Now()
	select {
	case r.packets <- p:
	default:
		select {
		case <-r.done:
		default:
			r.stats.queueFull.Add(1)
		}
		p.Release()
	}
}

// SenderReport does not block, and may drop the report.
func (l *Layer) SenderReport(ntp uint64, rtp uint32, arrived time.Time) {
	l.room.try(func() {
		if l.closed {
			return
		}
		clock := l.room.clock(l.cfg.Peer)
		theirs := fromNTPTime(ntp)
		if late, ok := clock.observe(theirs, l.room.wall(arrived)); ok {
			clock.path.note(arrived, late)
		}
		l.report(theirs.Add(clock.offset), rtp, arrived)
	})
}

// report adds to the timeline of sound what the publisher's report says that its timestamps lack.
func (l *Layer) report(at time.Time, rtp uint32, arrived time.Time) {
	rtp = l.timeline.correctReport(arrived, rtp)
	if missing := at.Sub(l.clock.sampled(rtp)); l.cfg.Kind == KindAudio && l.clock.reported && missing >= leastReported {
		l.timeline.add(missing, l.clock.rate, l.tracker.highest+1, arrived)
		rtp += ticks(missing, l.clock.rate)
	}
	l.clock.reported = true
	l.clock.report(at, rtp)
}

// Close moves the slots to another layer of the source.
func (l *Layer) Close() { l.room.post(func() { l.room.dropLayer(l) }) }

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
	// Browsers probe a stopped layer with padding and its old packets.
	if sequence == l.tracker.highest && !p.empty() {
		if !l.alive(p.arrived) {
			l.requests.unanswered = 0
		}
		l.lastHeard = p.arrived
	}
	l.rate.add(p.length - p.redundancy.newest) // Narrow paths get no redundancy.
	changed := p.described && l.described.receive(p, sequence == l.tracker.highest)
	if t := p.picture.temporal; t > 0 {
		l.upper[t-1].add(p.length)
	}
	l.time(p, sequence == l.tracker.highest && !p.empty())
	l.clock.arrival(l.room.wall(p.arrived), p.header.timestamp)
	if l.cfg.Kind == KindVideo && p.picture.keyframe && !p.empty() {
		l.receiveKeyframe(p)
	}
	if changed {
		l.room.rearrange(l, p.arrived)
	}
	return true
}

func (l *Layer) receiveKeyframe(p *Packet) {
	if p.picture.keyframe = l.keyframe.begins(p); !p.picture.keyframe {
		return
	}
	l.requests.arrived()
	l.shunnedUntil = time.Time{}
	if !p.described && l.described.structure != nil {
		l.described = description{arranged: l.described.arranged}
	}
	if p.picture.height > 0 && p.picture.height != l.height {
		l.height = p.picture.height
		l.room.layersChanged = true
	}
}

// time corrects the timestamp of sound, and lets pictures tell what has arrived.
func (l *Layer) time(p *Packet, newest bool) {
	sound := l.cfg.Kind == KindAudio
	if newest && l.peer != nil {
		if sound {
			l.timeline.observe(p.sequence, p.header.timestamp, l.clock.rate, p.arrived, &l.peer.path)
		} else {
			l.peer.path.note(p.arrived, l.transit.late(p.arrived, p.header.timestamp, l.clock.rate))
		}
	}
	if sound {
		p.header.timestamp = l.timeline.correct(p.sequence, p.header.timestamp)
	}
}

func (l *Layer) requestKeyframe(by *subscriber, now time.Time) {
	l.room.viewersWait = true
	if l.cfg.Kind == KindVideo && l.grants(by, now) && l.requests.request(now) {
		l.sendPLI()
	}
}

// grants reports whether the subscriber may ask, which counts unless a keyframe comes anyway.
func (l *Layer) grants(by *subscriber, now time.Time) bool {
	return !l.requests.settled() || by.mayAsk(l.cfg.key(), now)
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
	if l.cfg.Kind != KindVideo {
		return
	}
	waits := func(s *Slot) bool { return s.ready && (s.current != l || s.targeting.waits(now)) }
	waiting := slices.ContainsFunc(l.slots, waits)
	again := waiting && now.Sub(l.requests.last) >= l.requests.patience() &&
		slices.ContainsFunc(l.slots, func(s *Slot) bool { return waits(s) && l.grants(s.sub, now) })
	if l.requests.due(now) || again && l.requests.request(now) {
		l.sendPLI()
	}
	for _, s := range l.slots {
		if s.current == l && s.temporal.stuck(l, now) {
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
