package peer

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// track is one encoding that a peer sends. It outlives its connections; without one, what is written goes nowhere.
type track struct {
	mime string
	kind webrtc.RTPCodecType
	rid  string // empty without simulcast

	bound atomic.Pointer[binding]
	mid   atomic.Pointer[string] // of the m-line of the next binding; nil before the first offer

	// wantKeyframe is set by a PLI and cleared by the next frame.
	wantKeyframe atomic.Bool
	packets      atomic.Uint64
	bytes        atomic.Uint64 // of RTP, headers included
}

// binding is a track on one connection, changed by the sender's goroutine only.
type binding struct {
	id     string
	writer webrtc.TrackLocalWriter
	header rtp.Header // of the next packet
	mid    string

	// Header extensions; 0 = not negotiated.
	levelID, midID, ridID uint8
}

// Bind is part of webrtc.TrackLocal.
func (t *track) Bind(bound webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	codecs := bound.CodecParameters()
	i := slices.IndexFunc(codecs, func(c webrtc.RTPCodecParameters) bool { return c.MimeType == t.mime })
	if i < 0 {
		return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
	}
	b := &binding{id: bound.ID(), writer: bound.WriteStream()}
	if mid := t.mid.Load(); mid != nil {
		b.mid = *mid
	}
	b.header = rtp.Header{Version: 2, SequenceNumber: uint16(rand.Uint32()), SSRC: uint32(bound.SSRC()), PayloadType: uint8(codecs[i].PayloadType)}
	for _, extension := range bound.HeaderExtensions() {
		switch extension.URI {
		case sdp.AudioLevelURI:
			b.levelID = uint8(extension.ID)
		case sdp.SDESMidURI:
			b.midID = uint8(extension.ID)
		case sdp.SDESRTPStreamIDURI:
			b.ridID = uint8(extension.ID)
		}
	}
	t.bound.Store(b)
	return codecs[i], nil
}

// Unbind is part of webrtc.TrackLocal.
func (t *track) Unbind(bound webrtc.TrackLocalContext) error {
	if b := t.bound.Load(); b != nil && b.id == bound.ID() {
		t.bound.CompareAndSwap(b, nil)
	}
	return nil
}

// ID is part of webrtc.TrackLocal.
func (t *track) ID() string { return t.kind.String() }

// RID is part of webrtc.TrackLocal.
func (t *track) RID() string { return t.rid }

// StreamID is part of webrtc.TrackLocal.
func (t *track) StreamID() string { return "peer" }

// Kind is part of webrtc.TrackLocal.
func (t *track) Kind() webrtc.RTPCodecType { return t.kind }

// write sends one packet and reports whether the transport took it.
func (t *track) write(timestamp uint32, marker bool, level uint8, payload []byte) bool {
	b := t.bound.Load()
	if b == nil {
		return false
	}
	h := b.header
	h.Timestamp, h.Marker = timestamp, marker
	if t.kind == webrtc.RTPCodecTypeAudio && b.levelID != 0 {
		_ = h.SetExtension(b.levelID, []byte{level}) // one byte always fits, as do the two below
	}
	if t.rid != "" && b.midID != 0 && b.ridID != 0 {
		_ = h.SetExtension(b.midID, []byte(b.mid))
		_ = h.SetExtension(b.ridID, []byte(t.rid))
	}
	size := h.MarshalSize() + len(payload)
	if n, err := b.writer.WriteRTP(&h, payload); err != nil || n == 0 {
		return false // Pion writes nothing, without an error, until DTLS is up
	}
	b.header.SequenceNumber++
	t.packets.Add(1)
	t.bytes.Add(uint64(size))
	return true
}
