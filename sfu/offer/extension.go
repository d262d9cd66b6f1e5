package offer

import (
	"strconv"
	"strings"
)

// Extensions are the negotiated ids, 1 to 14, of the one-byte form; 0 for none.
type Extensions struct {
	MID, RID, RepairedRID, AudioLevel, TransportCC, AbsSendTime uint8
	// Passed on as they are.
	AbsCaptureTime, PlayoutDelay, VideoOrientation uint8
	// DependencyDescriptor is not for VP8: Chromium would omit picture numbers, which browsers without it need. It
	// needs a=extmap-allow-mixed.
	DependencyDescriptor uint8
}

const (
	uriMID         = "urn:ietf:params:rtp-hdrext:sdes:mid"
	uriRID         = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
	uriRepairedRID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
	uriAudioLevel  = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
	uriTransportCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	uriAbsSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"

	uriAbsCaptureTime   = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
	uriPlayoutDelay     = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
	uriVideoOrientation = "urn:3gpp:video-orientation"

	uriDependencyDescriptor = "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"

	// RFC 8285 section 4.2
	maxOneByteID = 14
)

// named is nil for an extension that is not used on this kind of m-line.
func (e *Extensions) named(uri string, audio bool) *uint8 {
	switch uri {
	case uriMID:
		return &e.MID
	case uriTransportCC:
		return &e.TransportCC
	case uriAbsSendTime:
		return &e.AbsSendTime
	case uriAbsCaptureTime:
		return &e.AbsCaptureTime
	case uriPlayoutDelay:
		if !audio {
			return &e.PlayoutDelay
		}
	case uriVideoOrientation:
		if !audio {
			return &e.VideoOrientation
		}
	case uriDependencyDescriptor:
		if !audio {
			return &e.DependencyDescriptor
		}
	case uriAudioLevel:
		if audio {
			return &e.AudioLevel
		}
	case uriRID:
		if !audio {
			return &e.RID
		}
	case uriRepairedRID:
		if !audio {
			return &e.RepairedRID
		}
	}
	return nil
}

// learnExtension reads "id[/direction] uri [attributes]"; the first of a URI counts.
func (s *Section) learnExtension(value string, used *uint16) {
	first, rest, _ := strings.Cut(value, " ")
	uri, _, _ := strings.Cut(rest, " ")
	number, direction, _ := strings.Cut(first, "/")
	id, err := strconv.ParseUint(number, 10, 8)
	field := s.Extensions.named(uri, s.Audio)
	if err != nil || id == 0 || id > maxOneByteID || field == nil || *field != 0 || *used&(1<<id) != 0 {
		return
	}
	switch direction {
	case "", "sendrecv":
	case "recvonly":
		s.recvOnly |= 1 << id
	case "sendonly":
		s.sendOnly |= 1 << id
	default:
		return
	}
	*used |= 1 << id
	*field = uint8(id)
}
