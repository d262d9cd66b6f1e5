package offer

import (
	"strconv"
	"strings"
)

// Codec is a codec that is forwarded, with the payload types of the offer.
type Codec struct {
	Name           string // VP8, H264 or opus
	MimeType       string // video/VP8
	Fmtp           string // as it stands in the answer; empty for none
	ClockRate      uint32 // Hz
	Channels       int    // 0 for video
	PayloadType    uint8
	RTXPayloadType uint8 // 0 for none

	feedback feedback // kinds that both sides have
}

// NACK reports whether the client asks for lost packets again.
func (c *Codec) NACK() bool { return c.feedback&nack != 0 }

// feedback is a set of kinds of RTCP feedback.
type feedback uint8

const (
	googREMB feedback = 1 << iota
	transportCC
	ccmFIR
	nack
	nackPLI
)

// String is one kind as a=rtcp-fb writes it.
func (f feedback) String() string {
	switch f {
	case googREMB:
		return "goog-remb"
	case transportCC:
		return "transport-cc"
	case ccmFIR:
		return "ccm fir"
	case nack:
		return "nack"
	case nackPLI:
		return "nack pli"
	}
	return ""
}

// readFeedback reads what follows the payload type in a=rtcp-fb, 0 for a kind that is not used.
func readFeedback(text string) feedback {
	for kind := googREMB; kind <= nackPLI; kind <<= 1 {
		if text == kind.String() {
			return kind
		}
	}
	return 0
}

// encoding is what an rtpmap names.
type encoding uint8

const (
	encodingOther encoding = iota
	encodingOpus
	encodingVP8
	encodingH264
	encodingRTX
)

func readEncoding(rtpmap string) encoding {
	switch {
	case strings.EqualFold(rtpmap, "opus/48000/2"):
		return encodingOpus
	case strings.EqualFold(rtpmap, "VP8/90000"):
		return encodingVP8
	case strings.EqualFold(rtpmap, "H264/90000"):
		return encodingH264
	case strings.EqualFold(rtpmap, "rtx/90000"):
		return encodingRTX
	}
	return encodingOther
}

// The forms of H.264 that every browser and phone can encode and decode. Chromium writes them just so.
const (
	h264Constrained = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"
	h264Baseline    = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f"
)

// payload is what the attributes of an m-line say of one payload type.
type payload struct {
	encoding encoding
	feedback feedback
	listed   bool // among the formats
	fmtp     string
}

// codec is the codec of ours that a payload type carries.
func (p *payload) codec(audio bool) (Codec, bool) {
	const video = googREMB | transportCC | ccmFIR | nack | nackPLI
	switch {
	case audio && p.encoding == encodingOpus:
		return Codec{
			Name: "opus", MimeType: "audio/opus", Fmtp: "minptime=10;useinbandfec=1", ClockRate: 48000, Channels: 2,
			feedback: p.feedback & transportCC,
		}, true
	case !audio && p.encoding == encodingVP8:
		return Codec{Name: "VP8", MimeType: "video/VP8", ClockRate: 90000, feedback: p.feedback & video}, true
	case !audio && p.encoding == encodingH264:
		form := h264Form(p.fmtp)
		return Codec{Name: "H264", MimeType: "video/H264", Fmtp: form, ClockRate: 90000, feedback: p.feedback & video}, form != ""
	}
	return Codec{}, false
}

// h264Form gives the form of H.264 that parameters describe, empty for one that is not forwarded.
func h264Form(fmtp string) string {
	if parameter(fmtp, "packetization-mode") != "1" {
		return ""
	}
	switch id := parameter(fmtp, "profile-level-id"); {
	case strings.EqualFold(id, "42e01f"):
		return h264Constrained
	case strings.EqualFold(id, "42001f"):
		return h264Baseline
	}
	return ""
}

// parameter is the value of one fmtp parameter, empty for none.
func parameter(fmtp, name string) string {
	for part := range strings.SplitSeq(fmtp, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// payloadTypes is how many there are: they have 7 bits.
const payloadTypes = 128

// payloadType reads a payload type that can be told from RTCP on the same port (RFC 5761 section 4).
func payloadType(text string) (uint8, bool) {
	n, err := strconv.ParseUint(text, 10, 8)
	return uint8(n), err == nil && n < payloadTypes && (n < 64 || n > 95)
}

// payloadTable is what an m-line says of its payload types.
type payloadTable struct {
	types [payloadTypes]payload
	every feedback // of a=rtcp-fb:*
}

// learn reads an attribute rtpmap, fmtp or rtcp-fb. The first of a kind counts.
func (t *payloadTable) learn(key, value string) {
	format, rest, _ := strings.Cut(value, " ")
	if key == "rtcp-fb" && format == "*" {
		t.every |= readFeedback(rest)
		return
	}
	n, ok := payloadType(format)
	if !ok {
		return
	}
	p := &t.types[n]
	switch key {
	case "rtpmap":
		if p.encoding == encodingOther {
			p.encoding = readEncoding(rest)
		}
	case "fmtp":
		if p.fmtp == "" {
			p.fmtp = rest
		}
	case "rtcp-fb":
		p.feedback |= readFeedback(rest)
	}
}

// codecs appends the codecs of ours among the formats of an m-line, each form once. A format is looked at once, however often
// it is listed: its fmtp may be long.
func (t *payloadTable) codecs(list []Codec, formats string, audio bool) []Codec {
	var repairs [payloadTypes]uint8 // by the payload type that is repaired
	for format := range strings.FieldsSeq(formats) {
		n, ok := payloadType(format)
		if !ok {
			continue
		}
		p := &t.types[n]
		if p.listed {
			continue
		}
		p.listed = true
		if p.encoding == encodingRTX {
			if apt, ok := payloadType(parameter(p.fmtp, "apt")); ok && repairs[apt] == 0 {
				repairs[apt] = n
			}
			continue
		}
		p.feedback |= t.every
		if codec, ok := p.codec(audio); ok && !has(list, codec) {
			codec.PayloadType = n
			list = append(list, codec)
		}
	}
	for i := range list {
		list[i].RTXPayloadType = repairs[list[i].PayloadType]
	}
	return list
}

func has(list []Codec, codec Codec) bool {
	for i := range list {
		if list[i].Name == codec.Name && list[i].Fmtp == codec.Fmtp {
			return true
		}
	}
	return false
}
