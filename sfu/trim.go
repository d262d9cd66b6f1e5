package sfu

import (
	"slices"
	"strings"

	"github.com/pion/sdp/v3"
)

// maxCandidates is how many of an offer's candidates are believed: a browser names
// one or two for each network that it is on. Each is an address that this node sends
// checks to, and the client can name whose it likes.
const maxCandidates = 16

// trimCandidates takes out the candidates past the limit, and those of TCP, which this
// node does not speak: connecting to them would let a client make it
// knock on any port anywhere. A client without candidates is found by its own checks.
func trimCandidates(parsed *sdp.SessionDescription) {
	kept := 0
	tooMuch := func(attribute sdp.Attribute) bool {
		if attribute.Key != sdp.AttrKeyCandidate {
			return false
		}
		if words := strings.Fields(attribute.Value); len(words) < 3 || !strings.EqualFold(words[2], "udp") || kept == maxCandidates {
			return true
		}
		kept++
		return false
	}
	parsed.Attributes = slices.DeleteFunc(parsed.Attributes, tooMuch)
	for _, media := range parsed.MediaDescriptions {
		media.Attributes = slices.DeleteFunc(media.Attributes, tooMuch)
	}
}

// trim takes the payload types out of an offer that no node forwards. A browser
// offers some twenty codecs and forms of codecs on every m-line, Pion compares each
// with each of ours, and with a dozen slots that is most of the cost of an answer
// (BenchmarkAnswer). An m-line of which nothing would be left is not changed.
func trim(parsed *sdp.SessionDescription) {
	for _, media := range parsed.MediaDescriptions {
		kept := forwarded(media)
		if len(kept) == 0 || len(kept) == len(media.MediaName.Formats) {
			continue
		}
		media.MediaName.Formats = slices.DeleteFunc(media.MediaName.Formats, func(format string) bool { return !kept[format] })
		media.Attributes = slices.DeleteFunc(media.Attributes, func(attribute sdp.Attribute) bool {
			switch attribute.Key {
			case "rtpmap", "fmtp", "rtcp-fb":
				format, _, _ := strings.Cut(attribute.Value, " ")
				return format != "*" && !kept[format]
			}
			return false
		})
	}
}

// forwarded are the payload types of an m-line that carry a codec of ours, or
// the retransmissions of one.
func forwarded(media *sdp.MediaDescription) map[string]bool {
	fmtp := map[string]string{}
	for _, attribute := range media.Attributes {
		if attribute.Key == "fmtp" {
			format, parameters, _ := strings.Cut(attribute.Value, " ")
			fmtp[format] = strings.ToLower(parameters)
		}
	}
	kept := map[string]bool{}
	var retransmissions []string
	for _, attribute := range media.Attributes {
		if attribute.Key != "rtpmap" {
			continue
		}
		format, encoding, _ := strings.Cut(attribute.Value, " ")
		name, _, _ := strings.Cut(encoding, "/")
		switch strings.ToLower(name) {
		case "opus", "vp8":
			kept[format] = true
		case "h264":
			kept[format] = baseline(fmtp[format])
		case "rtx":
			retransmissions = append(retransmissions, format)
		}
	}
	for _, format := range retransmissions {
		if original, ok := strings.CutPrefix(fmtp[format], "apt="); ok && kept[original] {
			kept[format] = true
		}
	}
	for format, keep := range kept {
		if !keep || !slices.Contains(media.MediaName.Formats, format) {
			delete(kept, format)
		}
	}
	return kept
}

// baseline reports whether H.264 parameters are one of the two forms we forward.
func baseline(fmtp string) bool {
	return strings.Contains(fmtp, "packetization-mode=1") &&
		(strings.Contains(fmtp, "profile-level-id=42e01f") || strings.Contains(fmtp, "profile-level-id=42001f"))
}
