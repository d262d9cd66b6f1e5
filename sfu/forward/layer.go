package forward

import "time"

// Codec is one codec of a negotiated media section.
type Codec struct {
	MimeType       string // "video/VP8", compared without case
	Fmtp           string // a=fmtp parameters; H264 matches by packetization-mode and profile
	ClockRate      uint32 // Hz
	PayloadType    uint8
	RTXPayloadType uint8 // 0: this codec has no RTX (of slots only; a publisher's RTX is Pion's matter)
}

// LayerConfig describes one encoding that a publisher sends.
type LayerConfig struct {
	Peer   PeerID
	Source Source
	Kind   Kind
	RID    string // empty without simulcast
	SSRC   uint32
	Codec  Codec // what its packets carry; a packet with another payload type is ignored

	// AudioLevelExtensionID is the negotiated id of RFC 6464's extension, 0 when there is none.
	AudioLevelExtensionID uint8

	// SendPLI asks the publisher for a keyframe of this layer. It is called on
	// the room's loop and must not block. Nil for audio.
	SendPLI func()
}

// Layer is one encoding that a publisher sends. Its methods are safe for
// concurrent use; packets of one layer must be pushed by one goroutine.
type Layer struct {
	room *Room
	cfg  LayerConfig
}

// Push hands a packet over to the room, which releases it; the caller must not
// touch it again. When the room's queue is full the packet is dropped and
// counted (Stats.Drops.QueueFull), so that a reader is never held up.
func (l *Layer) Push(p *Packet) {}

// SenderReport records how the publisher's clock and its RTP timestamps belong
// together, from an RTCP sender report for this layer's SSRC.
func (l *Layer) SenderReport(ntpTime uint64, rtpTime uint32, arrived time.Time) {}

// Close takes the layer away; slots that show it fall to another layer of its
// source, or go quiet.
func (l *Layer) Close() {}
