package forward

import (
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// PacketWriter sends one RTP packet. It must be done with header and payload
// when it returns: both are reused. webrtc.TrackLocalWriter satisfies it.
type PacketWriter interface {
	WriteRTP(header *rtp.Header, payload []byte) (int, error)
}

// SlotConfig describes one receiving m-line of a subscriber.
type SlotConfig struct {
	Peer    PeerID // the subscriber
	Mid     string
	Kind    Kind
	Writer  PacketWriter
	SSRC    uint32
	RTXSSRC uint32  // 0: retransmissions go out on SSRC
	Codecs  []Codec // what this subscriber negotiated for the m-line; a source it cannot decode is not shown

	// WriteRTCP sends sender reports. It is called on the room's loop and must not block.
	WriteRTCP func([]rtcp.Packet) error
}

// Slot is one receiving m-line of a subscriber. Its methods are safe for concurrent use.
type Slot struct {
	room *Room
	cfg  SlotConfig
}

// Ready says that this subscriber's DTLS transport is up (also: up again).
// Nothing is written before it. The slot then begins with a keyframe.
func (s *Slot) Ready() {}

// NACK answers a receiver's list of missing sequence numbers (of this slot's
// SSRC) from the source's retransmission cache.
func (s *Slot) NACK(sequenceNumbers []uint16) {}

// KeyframeRequested passes a receiver's PLI or FIR on to the source, at most
// one in MinPLIInterval for each layer; the last request within it is kept.
func (s *Slot) KeyframeRequested() {}

// Close takes the slot away and writes nothing more to it once it has returned,
// unless it is called from one of the room's own callbacks.
func (s *Slot) Close() {}
