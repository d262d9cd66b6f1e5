package offer

import (
	"errors"
	"fmt"
)

// ErrBad is wrapped by every refusal of an SDP offer. The text after it is
// a sentence for the person who wrote the client.
var ErrBad = errors.New("the offer cannot be answered")

const (
	// maxSections bounds the m-lines of one offer beside the slots: a microphone,
	// a camera, a screen with sound, and lines that were stopped earlier.
	maxSections = 32
	// maxNameBytes bounds a mid and a RID: what a one-byte header extension can carry (RFC 8285 section 4.2).
	maxNameBytes = 16
	// maxRIDs bounds the simulcast encodings of an m-line; browsers send three.
	maxRIDs = 8
	// maxSSRCs bounds the SSRCs that an m-line declares: three encodings and their retransmissions are six.
	maxSSRCs = 16
)

// Limits are what a node grants one offer.
type Limits struct {
	SlotsPerPeer int // receive m-lines
	SDPBytes     int
}

// Offer is an SDP offer as far as a media node reads it.
type Offer struct {
	// Origin names the client's RTCPeerConnection: session id and DTLS fingerprint. An ICE restart does not change it.
	Origin      string
	Ufrag       string // ICE credentials of the client
	Password    string
	Fingerprint Fingerprint
	Setup       string // DTLS role: actpass or passive
	Sections    []Section

	mixed bool // a=extmap-allow-mixed
}

// Fingerprint is the hash of the client's DTLS certificate.
type Fingerprint struct {
	Algorithm string // sha-256, sha-384 or sha-512
	Value     []byte
}

// Section is one m-line.
type Section struct {
	MID   string // empty only when the m-line is rejected
	Audio bool
	// Publishes: the client sends on it. Receives: it only receives on it, which makes it a slot.
	Publishes, Receives bool
	// Rejected: no answer can use it. The client stopped it, it is outside of the BUNDLE group, or it has no codec of ours.
	Rejected   bool
	Codecs     []Codec // ours, in the client's order of preference; not to be changed
	Extensions Extensions
	RIDs       []string // the simulcast encodings that the client sends, in its order
	SSRCs      []uint32 // declared by a=ssrc of a publishing m-line, in order
	// Repairs gives the SSRC that an SSRC retransmits, from a=ssrc-group:FID; nil for none.
	Repairs map[uint32]uint32

	paused   uint8  // bit i: RIDs[i] is paused by the client
	format   uint8  // the first payload type of the m-line
	recvOnly uint16 // bit id: the client only receives this extension
	sendOnly uint16 // bit id: the client only sends this extension
}

// Slots counts the receive m-lines.
func (o *Offer) Slots() int {
	count := 0
	for i := range o.Sections {
		if o.Sections[i].Receives {
			count++
		}
	}
	return count
}

// Extends checks that an offer keeps the m-lines of the one before it on the same
// connection, as every later offer must; only one that was stopped may be put to another use.
func (o *Offer) Extends(before []Section) error {
	for i := range before {
		old := &before[i]
		stopped := !old.Publishes && !old.Receives
		if i < len(o.Sections) && (stopped || o.Sections[i].MID == old.MID && o.Sections[i].Audio == old.Audio) {
			continue
		}
		return fmt.Errorf("%w: it does not keep the m-line with mid %q where the offer before it had it", ErrBad, old.MID)
	}
	return nil
}
