package offer

import (
	"errors"
	"fmt"
	"slices"
)

// ErrBad is wrapped by every error of Read and Extends. The text is written for the author of the client.
var ErrBad = errors.New("the offer cannot be answered")

const (
	// Beside slots: microphone, camera, screen with sound, and stopped lines.
	maxSections = 32
	// RFC 8285 section 4.2.
	maxNameBytes = 16
	maxRIDs      = 8
	maxSSRCs     = 16

	// RFC 8841 sections 4.3 and 5.1.
	dataProtocol = "UDP/DTLS/SCTP"
	dataFormat   = "webrtc-datachannel"
)

// Limits bound one offer.
type Limits struct {
	SlotsPerPeer int // receiving m-lines
	SDPBytes     int
}

// Offer is what a media node reads from an SDP offer.
type Offer struct {
	// Origin names the RTCPeerConnection; an ICE restart keeps it.
	Origin      string
	Ufrag       string // of the client's ICE
	Password    string
	Fingerprint Fingerprint
	Setup       string // DTLS role: actpass or passive
	Sections    []Section

	mixed bool // a=extmap-allow-mixed
}

// Fingerprint is the client's DTLS certificate's hash.
type Fingerprint struct {
	Algorithm string // sha-256, sha-384 or sha-512
	Value     []byte
}

// Section is one m-line.
type Section struct {
	MID   string // empty only if rejected
	Audio bool
	// Data carries data channels (RFC 8841). It has no direction, codecs and extensions.
	Data bool
	// Publishes: the client sends. Receives: it only receives; the m-line is a slot.
	Publishes, Receives bool
	// Rejected: stopped, outside the BUNDLE group, without a codec of ours, or a second one for data.
	Rejected   bool
	Codecs     []Codec // ours, in the client's order; not to be changed
	Extensions Extensions
	RIDs       []string // simulcast encodings in the client's order
	SSRCs      []uint32 // of a publishing m-line's a=ssrc, in order
	// Repairs has what an RTX SSRC repairs (a=ssrc-group:FID); nil: nothing.
	Repairs map[uint32]uint32

	paused   uint8 // bit i: RIDs[i] is paused
	format   uint8
	recvOnly uint16 // bit id: only received by the client
	sendOnly uint16 // bit id: only sent by the client
}

// HasData reports whether the client wants data channels.
func (o *Offer) HasData() bool {
	return slices.ContainsFunc(o.Sections, func(s Section) bool { return s.Data && !s.Rejected })
}

// Slots returns the number of receiving m-lines.
func (o *Offer) Slots() int {
	count := 0
	for i := range o.Sections {
		if o.Sections[i].Receives {
			count++
		}
	}
	return count
}

// Extends returns an error if the offer does not keep the m-lines of the previous offer. Only stopped m-lines may change.
func (o *Offer) Extends(before []Section) error {
	for i := range before {
		old := &before[i]
		stopped := !old.Publishes && !old.Receives && (!old.Data || old.Rejected)
		if i < len(o.Sections) && (stopped || o.Sections[i].MID == old.MID && o.Sections[i].Audio == old.Audio && o.Sections[i].Data == old.Data) {
			continue
		}
		return fmt.Errorf("%w: it does not keep the m-line with mid %q where the offer before it had it", ErrBad, old.MID)
	}
	return nil
}
