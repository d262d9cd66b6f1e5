package sfu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pion/sdp/v3"
)

// ErrBadOffer is wrapped by every refusal of an SDP offer. The text after it is
// a sentence for the person who wrote the client.
var ErrBadOffer = errors.New("the offer cannot be answered")

const (
	// maxSections bounds the m-lines of one offer beside the slots: a microphone,
	// a camera, a screen with sound, and lines that were stopped earlier.
	maxSections = 32
	// maxMidBytes bounds a mid; browsers use one or two digits.
	maxMidBytes = 16
	// maxFormats bounds the payload types of an m-line, which have 7 bits.
	maxFormats = 128
	// maxAttributes bounds the a-lines of an m-line or of the session: Chromium's longest
	// m-line has some 200. Pion compares many of them with each other.
	maxAttributes = 512
)

// section is one m-line of an offer.
type section struct {
	mid       string
	audio     bool
	publishes bool // the client sends on it
	receives  bool // the client only receives on it: a slot
}

// offerShape is what we need to know of an offer before Pion sees it.
type offerShape struct {
	origin   string // the RTCPeerConnection: o= session id and DTLS fingerprint
	sections []section
	sdp      string // the offer without what is not forwarded (trim)
}

// slots counts the receive m-lines.
func (o offerShape) slots() int {
	count := 0
	for _, s := range o.sections {
		if s.receives {
			count++
		}
	}
	return count
}

// extends checks that an offer keeps the m-lines of the one before it on the same
// connection, as every later offer must; only one that was stopped may be put to another use.
// Pion would take what is missing for stopped, and the client's media with it.
func (o offerShape) extends(before []section) error {
	for i, old := range before {
		stopped := !old.publishes && !old.receives
		if i < len(o.sections) && (stopped || o.sections[i].mid == old.mid && o.sections[i].audio == old.audio) {
			continue
		}
		return fmt.Errorf("%w: it does not keep the m-line with mid %q where the offer before it had it", ErrBadOffer, old.mid)
	}
	return nil
}

// readOffer checks that an SDP text is an offer of the kind this node answers,
// within its limits. Every error wraps ErrBadOffer.
func readOffer(text string, limits Limits) (offerShape, error) {
	if len(text) > limits.SDPBytes {
		return offerShape{}, fmt.Errorf("%w: it has %d bytes, at most %d", ErrBadOffer, len(text), limits.SDPBytes)
	}
	var parsed sdp.SessionDescription
	if err := parsed.UnmarshalString(text); err != nil {
		return offerShape{}, fmt.Errorf("%w: it is not SDP: %w", ErrBadOffer, err)
	}
	if len(parsed.MediaDescriptions) == 0 {
		return offerShape{}, fmt.Errorf("%w: it has no m-lines", ErrBadOffer)
	}
	if n := len(parsed.Attributes); n > maxAttributes {
		return offerShape{}, fmt.Errorf("%w: it has %d a-lines before the m-lines, at most %d", ErrBadOffer, n, maxAttributes)
	}
	shape := offerShape{origin: fmt.Sprintf("%d %s", parsed.Origin.SessionID, fingerprint(&parsed))}
	seen := map[string]bool{}
	for _, media := range parsed.MediaDescriptions {
		line, err := readSection(media)
		if err != nil {
			return offerShape{}, err
		}
		if seen[line.mid] {
			return offerShape{}, fmt.Errorf("%w: the mid %q is used twice", ErrBadOffer, line.mid)
		}
		seen[line.mid] = true
		shape.sections = append(shape.sections, line)
	}
	if n := shape.slots(); n > limits.SlotsPerPeer {
		return offerShape{}, fmt.Errorf("%w: it asks for %d slots, at most %d", ErrBadOffer, n, limits.SlotsPerPeer)
	}
	if n := len(shape.sections) - shape.slots(); n > maxSections {
		return offerShape{}, fmt.Errorf("%w: it has %d m-lines beside the slots, at most %d", ErrBadOffer, n, maxSections)
	}
	for _, want := range []string{"ice-ufrag", "ice-pwd", "fingerprint"} {
		if firstAttribute(&parsed, want) == "" {
			return offerShape{}, fmt.Errorf("%w: it has no a=%s", ErrBadOffer, want)
		}
	}
	trim(&parsed)
	trimCandidates(&parsed)
	trimmed, err := parsed.Marshal()
	if err != nil {
		return offerShape{}, fmt.Errorf("%w: %w", ErrBadOffer, err)
	}
	shape.sdp = string(trimmed)
	return shape, nil
}

func readSection(media *sdp.MediaDescription) (section, error) {
	kind := media.MediaName.Media
	if kind != "audio" && kind != "video" {
		return section{}, fmt.Errorf("%w: an m-line is of the kind %q, want audio or video", ErrBadOffer, kind)
	}
	mid, _ := media.Attribute(sdp.AttrKeyMID)
	if mid == "" || len(mid) > maxMidBytes || strings.ContainsAny(mid, " \t") {
		return section{}, fmt.Errorf("%w: an m-line has the mid %q, want 1 to %d characters", ErrBadOffer, mid, maxMidBytes)
	}
	if a, f := len(media.Attributes), len(media.MediaName.Formats); a > maxAttributes || f > maxFormats {
		return section{}, fmt.Errorf("%w: the m-line with mid %q has %d a-lines and %d payload types, at most %d and %d", ErrBadOffer, mid, a, f, maxAttributes, maxFormats)
	}
	line := section{mid: mid, audio: kind == "audio"}
	for _, attribute := range media.Attributes {
		switch attribute.Key {
		case sdp.AttrKeySendOnly, sdp.AttrKeySendRecv:
			line.publishes = true
		case sdp.AttrKeyRecvOnly:
			line.receives = true
		}
	}
	if line.publishes && line.receives {
		return section{}, fmt.Errorf("%w: the m-line with mid %q has two directions", ErrBadOffer, mid)
	}
	return line, nil
}

// fingerprint is the first DTLS fingerprint of a description.
func fingerprint(parsed *sdp.SessionDescription) string { return firstAttribute(parsed, "fingerprint") }

// firstAttribute is the value of an attribute of the session or, failing that,
// of the first m-line that has it.
func firstAttribute(parsed *sdp.SessionDescription, key string) string {
	if value, ok := parsed.Attribute(key); ok {
		return value
	}
	for _, media := range parsed.MediaDescriptions {
		if value, ok := media.Attribute(key); ok {
			return value
		}
	}
	return ""
}
