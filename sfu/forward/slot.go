package forward

import (
	"math/rand/v2"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// PacketWriter sends one RTP packet, with as much padding as the header says. It must be done with header and payload
// when it returns: both are reused. transport.Writer is one.
type PacketWriter interface {
	WriteRTP(header *rtp.Header, payload []byte) (int, error)
}

// Path is the transport that a slot is written to, as far as it is measured.
// Its methods are called on the room's loop. bandwidth.Path is one.
type Path interface {
	// Target is how many bits per second it carries, 0 for no limit: where a new slot begins, before SetBudget is called.
	Target() uint64
	// Next numbers the next packet, of so many bytes on the wire.
	Next(bytes int) uint16
	// Probe is called at every tick while the subscriber would be sent so much in
	// all if its budget allowed, and gives how many bytes of padding to send now. It is
	// urgent while a picture is not sent at all.
	Probe(wantedBitsPerSecond uint64, urgent bool) int
}

// SlotConfig describes one receiving m-line of a subscriber.
type SlotConfig struct {
	Peer    PeerID // the subscriber
	Mid     string
	Kind    Kind
	Stream  string // its MediaStream: a browser plays one sound and one picture of it in step; empty for none
	Writer  PacketWriter
	Shard   int // the Batcher that Writer writes into, as an index; the same for all slots of one transport
	SSRC    uint32
	RTXSSRC uint32  // 0: what is asked for again is left to Repeat
	Codecs  []Codec // what this subscriber negotiated for the m-line; a source it cannot decode is not shown

	// Path numbers what is written, with the negotiated id of the transport-wide
	// sequence number (1 to 14). All slots of one transport share one Path. Nil: nothing is numbered.
	Path                Path
	TransportSequenceID uint8
	Passed              PassedExtensions
	DescriptorID        uint8 // the negotiated id of the dependency descriptor, 0 for none

	// Repeat sends the packet that SSRC had under a sequence number again, byte for byte: for what was negotiated without RTX. It
	// returns 0 for a packet that it has not. Nil: it has none.
	Repeat func(sequence uint16) (int, error)

	// WriteRTCP sends sender reports. It is called on the room's loop and must not block.
	WriteRTCP func([]rtcp.Packet) error
}

// How many packets a slot can find again for a NACK: a power of two.
const (
	videoMemoryPackets = 1024
	audioMemoryPackets = 64
)

// Slot is one receiving m-line of a subscriber. Its methods are safe for concurrent use.
type Slot struct {
	room *Room
	cfg  SlotConfig

	// The fields below belong to the room's loop.
	sub        *subscriber
	beside     *Slot // the one of the other kind in its stream, nil for none
	closed     bool
	ready      bool
	entry      Entry
	paused     bool      // the budget does not reach for its lowest layer
	restrained bool      // the node's level holds it back
	raised     time.Time // since when the budget has reached for more than is shown; zero: it does not
	target     *Layer
	source     *publication // that entry shows, nil: not looked up; see Room.shown
	moved      bool         // the entry is not what target and the table were worked out for
	position   int          // in the subscriber's table
	wanted     wish         // of the entry
	formats    []string     // of cfg.Codecs
	current    *Layer       // what is being sent; differs from target while waiting for a keyframe
	payload    payloadTypes

	rewriter       rewriter
	temporal       temporal
	spatial        uint8      // the highest spatial layer that is wanted, or allSpatial
	targeting      *targeting // of a described layer, nil before the first
	newest         time.Time  // when the newest packet of the stream was sampled, our clock; zero: none yet
	newestArrived  time.Time
	header         rtp.Header
	transport      [2]byte // the packet's number on its transport, for the header
	rtxSequence    uint16
	budget         retransmitBudget
	asked          time.Time // where the clock of repeated retransmissions begins; zero: nothing was asked for
	keyframesAsked uint64    // keyframes that the subscriber asked for
	askedAt        time.Time
	keyframes      uint64 // sent
	keyframeAt     time.Time
	starvation     starvation
	refreshed      time.Time // when the subscriber last said that it sees nothing
	report         slotReport
	losses         losses
}

// Ready says that this subscriber's DTLS transport is up (also: up again).
// Nothing is written before it. The slot then begins with a keyframe.
func (s *Slot) Ready() {
	s.room.post(func() {
		if s.closed {
			return
		}
		s.ready = true
		s.stop()
		s.start(time.Now())
	})
}

// NACK answers a receiver's list of missing sequence numbers (of this slot's
// SSRC) from the source's retransmission cache. Like KeyframeRequested it does not block: what the loop has no time for is
// asked again.
func (s *Slot) NACK(sequenceNumbers []uint16) {
	s.room.try(func() { s.retransmit(sequenceNumbers, time.Now()) })
}

// KeyframeRequested passes a receiver's PLI or FIR on to the source, at most
// one in Config.MinPLIInterval for each layer; the last request within it is kept.
func (s *Slot) KeyframeRequested() {
	s.room.try(func() {
		s.keyframesAsked++
		s.askedAt = time.Now()
		layer := s.current
		if layer == nil {
			layer = s.target
		}
		if layer != nil && !s.closed {
			layer.requestKeyframe(time.Now())
		}
	})
}

// Close takes the slot away. It does not wait: a packet that is being written
// may still follow.
func (s *Slot) Close() { s.room.post(func() { s.room.dropSlot(s) }) }

// aim chooses the layer that the slot shows, nil for none. Another layer of the
// same source takes over with its first keyframe, and until then the present one
// flows on; another person's picture stops at once, because the page already
// shows the new name.
func (s *Slot) aim(target *Layer, now time.Time) {
	if target == s.target {
		return
	}
	if s.target != nil && s.target != s.current {
		s.target.removeSlot(s)
	}
	s.target = target
	if s.current != nil && (target == nil || target.cfg.key() != s.current.cfg.key()) {
		s.stop()
	}
	if target != nil && target != s.current {
		s.start(now)
	}
}

// cut is aim for less than what is sent, because the path does not carry that. It stops at once:
// what would be sent until the lower layer's keyframe would stand in the path's queue before that
// keyframe, and lose packets of it and of the sound. What was sent so far is not sent again
// either: the keyframe makes it worthless.
func (s *Slot) cut(target *Layer, now time.Time) {
	if target == s.target {
		return
	}
	if target == nil || target != s.current { // else it only waited for more
		s.rewriter.forget()
		s.stop()
	}
	s.aim(target, now)
}

// stop sends nothing more of the present layer.
func (s *Slot) stop() {
	if s.current != nil {
		if s.current != s.target {
			s.current.removeSlot(s)
		}
		s.current = nil
	}
}

// start waits for the target's next keyframe and asks for it. A keyframe that
// has just come, and all that followed it, is written at once: the publisher
// would not make another so soon.
func (s *Slot) start(now time.Time) {
	l := s.target
	if l == nil {
		return
	}
	l.addSlot(s)
	if !s.ready || l.cfg.Kind != KindVideo {
		return
	}
	if s.current == nil && l.keyframe != 0 && now.Sub(l.keyframeAt) < s.room.cfg.MinPLIInterval && s.replay(l) {
		return
	}
	l.requestKeyframe(now)
}

// replay writes the layer's packets from its newest keyframe on. It returns
// false, having written nothing, when one of them is missing.
func (s *Slot) replay(l *Layer) bool {
	for sequence := l.keyframe; sequence <= l.tracker.highest; sequence++ {
		if l.cache.get(sequence) == nil {
			return false
		}
	}
	s.forward(l.cache.get(l.keyframe))
	return s.current == l
}

// newSlotStream begins the stream of a slot at random numbers, as RFC 3550
// section 5.1 asks. The first sequence number stays in the lower half, so that a
// receiver's roll-over counter can't be misled by early loss.
func newSlotStream(kind Kind) rewriter {
	memory := audioMemoryPackets
	if kind == KindVideo {
		memory = videoMemoryPackets
	}
	return newRewriter(uint16(rand.Uint32N(1<<15)), rand.Uint32(), memory)
}
