package forward

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/layerfilter"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// PacketWriter sends one RTP packet and must not keep header or payload.
type PacketWriter interface {
	WriteRTP(header *rtp.Header, payload []byte) (int, error)
}

// Path measures a slot's transport, on the room's loop.
type Path interface {
	// Target is in bits per second, 0 for no limit; used until SetBudget.
	Target() uint64
	// Next numbers a packet of so many bytes on the wire.
	Next(bytes int) uint16
	// Probe returns the bytes of padding to send. It is called each tick of a subscriber short of budget;
	// wantedBitsPerSecond is its rate without one; urgent: a picture is paused.
	Probe(wantedBitsPerSecond uint64, urgent bool) int
}

// SlotConfig describes one receiving m-line.
type SlotConfig struct {
	Peer    PeerID
	Mid     string
	Kind    Kind
	Stream  string // may be empty
	Writer  PacketWriter
	Shard   int // of Writer's Batcher; one for all slots of a transport
	SSRC    uint32
	RTXSSRC uint32  // 0: no RTX
	Codecs  []Codec // negotiated; others are not shown

	// Path numbers packets in the extension TransportSequenceID, 1 to 14; nil: no numbers. A transport's slots share
	// it.
	Path                Path
	TransportSequenceID uint8
	Passed              PassedExtensions
	DescriptorID        uint8 // 0: none

	// Repeat sends a packet of SSRC again, byte for byte, without RTX; 0: forgotten. Nil: never.
	Repeat func(sequence uint16) (int, error)

	// WriteRTCP runs on the room's loop and must not block.
	WriteRTCP func([]rtcp.Packet) error

	Gone func() bool // see RemovePeer; may be nil
}

// Packets that a NACK can find: powers of two.
const (
	videoMemoryPackets = 1024
	audioMemoryPackets = 64
)

// Slot is one receiving m-line. It is safe for concurrent use.
type Slot struct {
	room *Room
	cfg  SlotConfig

	// The loop owns the fields below.
	sub             *subscriber
	beside          *Slot // of the other kind in its stream
	closed          bool
	ready           bool
	entry           Entry
	paused          bool      // by the budget
	limitedByNode   bool      // by the node's level
	affordableSince time.Time // since when the budget allows more
	target          *Layer
	source          *publication // nil: see Room.shown
	moved           bool         // entry changed after target and table
	position        int
	wanted          wish
	formats         []string
	current         *Layer // not target until its keyframe
	payload         renumber.PayloadTypes

	rewriter       renumber.Rewriter
	temporal       layerfilter.Temporal
	spatial        uint8                // the highest wanted, or allSpatial
	targeting      *layerfilter.Targets // nil before the first described layer
	newest         time.Time            // sampling time, by Room.wall
	newestArrived  time.Time
	header         rtp.Header
	transport      [2]byte
	rtxSequence    uint16
	budget         retransmitBudget
	asked          time.Time // origin of rewriter's milliseconds
	keyframesAsked uint64    // by the subscriber
	askedAt        time.Time
	keyframes      uint64
	keyframeAt     time.Time
	starvation     starvation
	refreshed      time.Time
	report         slotReport
	losses         losses
}

// Ready says that DTLS is up, or up again. Nothing is sent before.
func (s *Slot) Ready() {
	s.room.post(func() {
		if s.closed {
			return
		}
		s.ready = true
		s.stopForwarding()
		s.startTarget(time.Now())
	})
}

// NACK sends packets again from the cache. It does not block, and may be lost.
func (s *Slot) NACK(sequenceNumbers []uint16) {
	s.room.try(func() { s.retransmit(sequenceNumbers, time.Now()) })
}

// KeyframeRequested passes a PLI or FIR on, at most once in Config.MinPLIInterval and within the subscriber's budget.
func (s *Slot) KeyframeRequested() {
	s.room.try(func() {
		s.keyframesAsked++
		s.askedAt = time.Now()
		layer := s.current
		if layer == nil {
			layer = s.target
		}
		if layer != nil && !s.closed {
			layer.requestKeyframe(s.sub, time.Now())
		}
	})
}

// Close does not wait: one more packet may follow.
func (s *Slot) Close() { s.room.post(func() { s.close() }) }

// applySelection sets the layer to show; nil: none. A layer of the same source flows on until the target's keyframe.
func (s *Slot) setTarget(target *Layer, now time.Time) {
	if target == s.target {
		return
	}
	if s.target != nil && s.target != s.current {
		s.target.removeSlot(s)
	}
	s.target = target
	if s.current != nil && (target == nil || target.cfg.key() != s.current.cfg.key()) {
		s.stopForwarding()
	}
	if target != nil && target != s.current {
		s.startTarget(now)
	}
}

// cutTo aims lower and stops at once, because the path does not carry what is sent.
func (s *Slot) cutTo(target *Layer, now time.Time) {
	if target == s.target {
		return
	}
	if target == nil || target != s.current {
		s.rewriter.Forget()
		s.stopForwarding()
	}
	s.setTarget(target, now)
}

func (s *Slot) stopForwarding() {
	if s.current != nil {
		if s.current != s.target {
			s.current.removeSlot(s)
		}
		s.current = nil
	}
}

// startTarget replays a recent keyframe, because the publisher makes no other so soon.
func (s *Slot) startTarget(now time.Time) {
	l := s.target
	if l == nil {
		return
	}
	l.addSlot(s)
	if !s.ready || l.cfg.Kind != KindVideo {
		return
	}
	if s.current == nil && l.keyframe.First != 0 && now.Sub(l.keyframe.At) < s.room.cfg.MinPLIInterval && s.replay(l) {
		return
	}
	l.requestKeyframe(s.sub, now)
}

func (s *Slot) replay(l *Layer) bool {
	for sequence := l.keyframe.First; sequence <= l.tracker.Highest; sequence++ {
		if l.cache.get(sequence) == nil {
			return false
		}
	}
	s.forward(l.cache.get(l.keyframe.First))
	return s.current == l
}

func (s *Slot) refresh(now time.Time) {
	since := now.Sub(s.refreshed)
	again := !s.refreshed.IsZero() && since < refreshAgain
	if again && since < refreshEvery {
		return
	}
	s.refreshed = now
	switch {
	case !s.ready || s.target == nil || s.cfg.Kind != KindVideo:
	case again:
		s.stopForwarding()
		s.startTarget(now)
	default:
		s.target.requestKeyframe(s.sub, now)
	}
}

// cut: the path does not carry the present layers.
func (s *Slot) limitLayers(c *layerChoice, cut bool, now time.Time) {
	s.temporal.Wanted = c.upTo
	if s.spatial == c.spatial {
		return
	}
	s.spatial = c.spatial
	if s.current != c.layer || s.targeting == nil {
		return
	}
	s.targeting.Cut = cut
	if s.targeting.Reaches(c.layer.described.active, c.spatial, c.upTo) {
		return
	}
	if cut {
		s.rewriter.Forget()
	}
	if !c.layer.keyframe.At.Equal(now) { // else it is at hand
		c.layer.requestKeyframe(s.sub, now)
	}
}

func (s *Slot) showsBelow(c *layerChoice) bool {
	return c.spatial > s.spatial || c.spatial == s.spatial && c.upTo > s.temporal.Wanted
}

func (s *Slot) tableEntry() Entry {
	e := s.entry
	e.Paused = s.paused && e.Peer != ""
	return e
}

func formats(codecs []Codec) []string {
	list := make([]string, len(codecs))
	for i, c := range codecs {
		list[i] = parse.FormatOf(c.MimeType, c.Fmtp)
	}
	return list
}

func (s *Slot) canReceive(l *Layer) bool { return slices.Contains(s.formats, l.format) }

func (s *Slot) redPayloadType() uint8 {
	if i := slices.IndexFunc(s.cfg.Codecs, func(c Codec) bool { return strings.EqualFold(c.MimeType, "audio/red") }); i >= 0 {
		return s.cfg.Codecs[i].PayloadType
	}
	return 0
}

func (s *Slot) rtxPayloadType() uint8 {
	for _, c := range s.cfg.Codecs {
		if c.RTXPayloadType != 0 {
			return c.RTXPayloadType
		}
	}
	return 0
}

// Browsers take padding in RTX, which uses no numbers of the media.
func (s *Slot) canProbe() bool {
	return s.ready && s.cfg.Path != nil && s.cfg.TransportSequenceID != 0 && s.cfg.RTXSSRC != 0 && s.rtxPayloadType() != 0
}

func (s *Slot) close() {
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
	s.rewriter.End()
	if s.sub != nil {
		s.sub.removeSlot(s)
	}
}
