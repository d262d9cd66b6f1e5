package sfu

import (
	"slices"
	"strings"

	"github.com/pion/sdp/v3"
)

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
