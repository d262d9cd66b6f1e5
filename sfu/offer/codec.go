package offer

import (
	"strconv"
	"strings"

	"github.com/holdfast-rtc/holdfast/sfu/h264"
)

// Codec is a codec that the node forwards, with the payload types of the offer.
type Codec struct {
	Name           string // VP8, VP9, AV1, H264 or opus
	MimeType       string // video/VP8
	Fmtp           string // for the answer
	ClockRate      uint32 // Hz
	Channels       int    // 0 for video
	PayloadType    uint8
	RTXPayloadType uint8 // 0 for none

	feedback feedback // common to both sides
	profile  h264.Profile
}

// NACK reports whether the client asks for lost packets.
func (c *Codec) NACK() bool { return c.feedback&nack != 0 }

type feedback uint8

const (
	googREMB feedback = 1 << iota
	transportCC
	ccmFIR
	nack
	nackPLI
)

// String returns the text of one kind of feedback in a=rtcp-fb.
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

func readFeedback(text string) feedback {
	for kind := googREMB; kind <= nackPLI; kind <<= 1 {
		if text == kind.String() {
			return kind
		}
	}
	return 0
}

type encoding uint8

const (
	encodingOther encoding = iota
	encodingOpus
	encodingVP8
	encodingVP9
	encodingAV1
	encodingH264
	encodingRTX
	encodingRED
)

func readEncoding(rtpmap string) encoding {
	switch {
	case strings.EqualFold(rtpmap, "opus/48000/2"):
		return encodingOpus
	case strings.EqualFold(rtpmap, "VP8/90000"):
		return encodingVP8
	case strings.EqualFold(rtpmap, "VP9/90000"):
		return encodingVP9
	case strings.EqualFold(rtpmap, "AV1/90000"):
		return encodingAV1
	case strings.EqualFold(rtpmap, "H264/90000"):
		return encodingH264
	case strings.EqualFold(rtpmap, "rtx/90000"):
		return encodingRTX
	case strings.EqualFold(rtpmap, "red/48000/2"):
		return encodingRED
	}
	return encodingOther
}

type payload struct {
	encoding encoding
	feedback feedback
	listed   bool
	fmtp     string
}

func (p *payload) codec(audio bool) (Codec, bool) {
	const video = googREMB | transportCC | ccmFIR | nack | nackPLI
	switch {
	case audio && p.encoding == encodingOpus:
		return Codec{
			Name: "opus", MimeType: "audio/opus", Fmtp: opusForm(p.fmtp), ClockRate: 48000, Channels: 2,
			feedback: p.feedback & (transportCC | nack),
		}, true
	case audio && p.encoding == encodingRED:
		form := redForm(p.fmtp)
		return Codec{Name: NameRED, MimeType: "audio/red", Fmtp: form, ClockRate: 48000, Channels: 2}, form != ""
	case !audio && p.encoding == encodingVP8:
		return Codec{Name: "VP8", MimeType: "video/VP8", ClockRate: 90000, feedback: p.feedback & video}, true
	case !audio && p.encoding == encodingVP9:
		fmtp, ok := mainProfile(p.fmtp, "profile-id")
		return Codec{Name: "VP9", MimeType: "video/VP9", Fmtp: fmtp, ClockRate: 90000, feedback: p.feedback & video}, ok
	case !audio && p.encoding == encodingAV1:
		fmtp, ok := mainProfile(p.fmtp, "profile")
		return Codec{Name: "AV1", MimeType: "video/AV1", Fmtp: fmtp, ClockRate: 90000, feedback: p.feedback & video}, ok
	case !audio && p.encoding == encodingH264:
		profile := h264.ProfileOf(h264.Parameter(p.fmtp, "profile-level-id"))
		if profile == h264.Unknown || h264.Parameter(p.fmtp, "packetization-mode") != "1" {
			break
		}
		// The client's level bounds what the other side sends.
		fmtp := "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=" + strings.ToLower(h264.Parameter(p.fmtp, "profile-level-id"))
		return Codec{Name: "H264", MimeType: "video/H264", Fmtp: fmtp, ClockRate: 90000, feedback: p.feedback & video, profile: profile}, true
	}
	return Codec{}, false
}

// opusForm offers two channels and DTX as the client does (RFC 7587 section 6.1).
func opusForm(fmtp string) string {
	form := []string{"minptime=10;useinbandfec=1"}
	for _, name := range []string{"stereo", "usedtx"} {
		if h264.Parameter(fmtp, name) == "1" {
			form = append(form, name+"=1")
		}
	}
	return strings.Join(form, ";")
}

// NameRED is the name of the codec for redundant sound (RFC 2198). Its Fmtp names the inner payload type.
const NameRED = "red"

// redForm reads "111/111", one payload type for all blocks; else it is empty.
func redForm(fmtp string) string {
	first, _, _ := strings.Cut(fmtp, "/")
	if _, ok := payloadType(first); !ok {
		return ""
	}
	for block := range strings.SplitSeq(fmtp, "/") {
		if block != first {
			return ""
		}
	}
	return first + "/" + first
}

// mainProfile is false for profiles other than 0, which not every browser decodes.
func mainProfile(fmtp, name string) (string, bool) {
	switch h264.Parameter(fmtp, name) {
	case "":
		return "", true
	case "0":
		return name + "=0", true
	}
	return "", false
}

const payloadTypes = 128

// payloadType must differ from RTCP on the same port (RFC 5761 section 4).
func payloadType(text string) (uint8, bool) {
	n, err := strconv.ParseUint(text, 10, 8)
	return uint8(n), err == nil && n < payloadTypes && (n < 64 || n > 95)
}

type payloadTable struct {
	types [payloadTypes]payload
	every feedback
}

// learn reads an a=rtpmap, a=fmtp or a=rtcp-fb value. The first rtpmap of a known
// encoding and the first fmtp of a payload type count.
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

// codecs appends the codecs of an m-line's formats to list. It reads each format once, however often it is listed, because an fmtp may be long.
func (t *payloadTable) codecs(list []Codec, formats string, audio bool) []Codec {
	var repairs [payloadTypes]uint8
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
			if apt, ok := payloadType(h264.Parameter(p.fmtp, "apt")); ok && repairs[apt] == 0 {
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
		if list[i].Name == codec.Name && list[i].profile == codec.profile {
			return true
		}
	}
	return false
}
