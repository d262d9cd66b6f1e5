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
	// Target is the budget until Room.SetBudget is called, in bits per second; 0 is no limit.
	Target() uint64
	// Next numbers a packet of so many bytes on the wire.
	Next(bytes int) uint16
	// Probe returns the bytes of padding to send. It is called at each tick while the subscriber is short of budget.
	// wantedBitsPerSecond is the rate that would be sent without a budget; urgent says that a picture is paused.
	Probe(wantedBitsPerSecond uint64, urgent bool) int
}

// SlotConfig describes one receiving m-line.
type SlotConfig struct {
	Peer PeerID
	Mid  string
	Kind Kind
	// Stream is the MediaStream that the receiver puts the track into; it may be empty.
	Stream string
	Writer PacketWriter
	// Shard is the index of Writer's Batcher. All slots of a transport have the same one.
	Shard int
	SSRC  uint32
	// RTXSSRC is 0 without RTX.
	RTXSSRC uint32
	// Codecs are the negotiated ones. Layers of other codecs are not shown.
	Codecs []Codec

	// Path gives packets the numbers of the header extension TransportSequenceID, which is 1 to 14. All slots of a transport have the same
	// Path. Without one, packets have no such numbers.
	Path                Path
	TransportSequenceID uint8
	Passed              PassedExtensions
	// DescriptorID is 0 if the dependency descriptor was not negotiated.
	DescriptorID uint8

	// Repeat sends a packet of SSRC again, byte for byte, for receivers without RTX. It returns 0 if the packet is forgotten. If Repeat is
	// nil, nothing is sent again without RTX.
	Repeat func(sequence uint16) (int, error)

	// WriteRTCP runs on the room's loop and must not block.
	WriteRTCP func([]rtcp.Packet) error

	// Gone is explained at Room.RemovePeer; it may be nil.
	Gone func() bool

	// Continue is for a slot that another node had; nil: the slot is new.
	Continue *Continuation
}

// How many of the last packets a NACK can find; powers of two.
const (
	videoMemoryPackets = 1024
	audioMemoryPackets = 64
)

// Slot is one receiving m-line. It is safe for concurrent use.
type Slot struct {
	room *Room
	cfg  SlotConfig

	// The loop owns the fields below. First, where the slot stands: beside is the slot of the other kind in the same stream.
	sub    *subscriber
	beside *Slot
	closed bool
	ready  bool

	// What the table says: moved tells that entry changed after the target was chosen and the table was stored. source caches the
	// publication that entry names; see members.shown.
	entry    Entry
	source   *publication
	moved    bool
	position int

	// What layerSelection decided. paused: the budget has nothing for the slot. limitedByNode: the node's level allows less than the path.
	// affordableSince is since when the budget allows more than is sent.
	wanted          wish
	formats         []string
	paused          bool
	limitedByNode   bool
	affordableSince time.Time

	// current is the layer that is sent. It becomes target at a keyframe of target.
	target  *Layer
	current *Layer
	filter  slotFilter

	// The stream that is written. newest is when the newest packet was sampled, by Room.wall. header is used for one packet after the
	// other.
	rewriter      renumber.Rewriter
	payload       renumber.PayloadTypes
	newest        time.Time
	newestArrived time.Time
	header        rtp.Header
	transport     [2]byte
	rtxSequence   uint16

	resends    resends
	keyframes  keyframeCounts
	starvation starvation
	refreshed  time.Time
	report     slotReport
}

// slotFilter leaves out pictures of the layer that is sent.
type slotFilter struct {
	// spatial is the highest wanted spatial layer, or layerfilter.AllSpatial. It stands beside what temporal wants, because selecting the
	// layers of a large room reads only these two.
	spatial  uint8
	temporal layerfilter.Temporal
	// targets is nil before the first layer with descriptors: it is large.
	targets *layerfilter.Targets
}

// described returns the filter of layers with dependency descriptors.
func (f *slotFilter) described() *layerfilter.Targets {
	if f.targets == nil {
		f.targets = layerfilter.NewTargets()
	}
	return f.targets
}

// keyframeCounts are the subscriber's requests, and the keyframes that it was sent.
type keyframeCounts struct {
	asked   uint64
	askedAt time.Time
	sent    uint64
	sentAt  time.Time
}

// resends is what was asked for again. origin is the origin of the milliseconds that the rewriter keeps.
type resends struct {
	budget retransmitBudget
	origin time.Time
	losses losses
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

// NACK sends packets again from the cache. It does not block. A busy loop ignores it.
func (s *Slot) NACK(sequenceNumbers []uint16) {
	s.room.try(func() { s.retransmit(sequenceNumbers, time.Now()) })
}

// KeyframeRequested passes a PLI or FIR on, at most once in Config.MinPLIInterval and within the subscriber's budget.
func (s *Slot) KeyframeRequested() {
	s.room.try(func() {
		s.keyframes.asked++
		s.keyframes.askedAt = time.Now()
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

// setTarget sets the layer to show, or nil for none. A layer of the same source flows on until the target's keyframe.
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

// cutTo sets a lower target and stops the present one at once, because the path does not carry it.
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

// startTarget asks for a keyframe of the target, or replays a recent one, because the publisher makes no other so soon. Before DTLS is up
// it asks, so that the keyframe is in the cache when the slot is ready.
func (s *Slot) startTarget(now time.Time) {
	l := s.target
	if l == nil {
		return
	}
	l.addSlot(s)
	if l.cfg.Kind != KindVideo {
		return
	}
	if s.ready && s.current == nil && l.keyframe.First != 0 && now.Sub(l.keyframe.At) < s.room.cfg.MinPLIInterval && s.replay(l) {
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

// limitLayers sets the spatial and temporal layers to show. cut: the path does not carry the present ones.
func (s *Slot) limitLayers(c *layerChoice, cut bool, now time.Time) {
	s.filter.temporal.Wanted = c.upTo
	if s.filter.spatial == c.spatial {
		return
	}
	s.filter.spatial = c.spatial
	if s.current != c.layer || s.filter.targets == nil {
		return
	}
	s.filter.targets.Cut = cut
	if s.filter.targets.Reaches(c.layer.described.active, c.spatial, c.upTo) {
		return
	}
	if cut {
		s.rewriter.Forget()
	}
	// A keyframe that arrives now is forwarded anyway.
	if !c.layer.keyframe.At.Equal(now) {
		c.layer.requestKeyframe(s.sub, now)
	}
}

func (s *Slot) showsBelow(c *layerChoice) bool {
	return c.spatial > s.filter.spatial || c.spatial == s.filter.spatial && c.upTo > s.filter.temporal.Wanted
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

// canProbe reports whether padding can be sent. It goes out as RTX, because that uses up no sequence numbers of the media.
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
