package peer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

const (
	opusType = 111

	levelID       = 1 // audio level (RFC 6464)
	transportID   = 2 // transport-wide sequence number
	midID         = 3 // RFC 9143
	ridID         = 4 // RFC 8852
	repairedRIDID = 5 // RFC 8852
)

// payloadTypes are those of a codec and of its retransmissions.
type payloadTypes struct{ media, repair uint8 }

func videoTypes(codec portrait.Codec) payloadTypes {
	if codec == portrait.VP9 {
		return payloadTypes{98, 99}
	}
	return payloadTypes{96, 97}
}

// codecs are those of the stack's people, the sent one first. Others of a room of VP9 may send VP8, as browsers do; not so the other
// way around, and each codec of each slot costs the media node time.
func (s *Stack) codecs() []portrait.Codec {
	if s.codec == portrait.VP9 {
		return []portrait.Codec{portrait.VP9, portrait.VP8}
	}
	return []portrait.Codec{portrait.VP8}
}

func (s *Stack) videoFormats() string {
	var formats []string
	for _, codec := range s.codecs() {
		types := videoTypes(codec)
		formats = append(formats, strconv.Itoa(int(types.media)), strconv.Itoa(int(types.repair)))
	}
	return strings.Join(formats, " ")
}

const (
	// Bounds of a parsed answer.
	maxCandidates  = 8
	maxSlotStreams = 512
)

// The offer (docs/PROTOCOL.md) has no candidates: the node learns the client's address from its checks.
func offerText(c *connection, opts Options) string {
	slots := opts.AudioSlots + opts.VideoSlots
	var lines strings.Builder
	var mids []string
	line := func(kind, direction string, types string) {
		mid := strconv.Itoa(len(mids))
		mids = append(mids, mid)
		fmt.Fprintf(&lines, "m=%s 9 UDP/TLS/RTP/SAVPF %s\r\nc=IN IP4 0.0.0.0\r\na=mid:%s\r\na=%s\r\na=rtcp-mux\r\na=rtcp-rsize\r\n", kind, types, mid, direction)
	}
	if c.microphone != nil {
		line("audio", "sendonly", strconv.Itoa(opusType))
		c.writeAudio(&lines)
		fmt.Fprintf(&lines, "a=ssrc:%d cname:%s\r\n", c.microphone.ssrc, c.cname)
	}
	if len(c.camera) > 0 {
		line("video", "sendonly", c.stack.videoFormats())
		c.writeVideo(&lines)
		c.writeLayers(&lines)
	}
	for i := range slots {
		if i < opts.AudioSlots {
			line("audio", "recvonly", strconv.Itoa(opusType))
			c.writeAudio(&lines)
		} else {
			line("video", "recvonly", c.stack.videoFormats())
			c.writeVideo(&lines)
		}
	}
	if opts.Data {
		mid := strconv.Itoa(len(mids))
		mids = append(mids, mid)
		fmt.Fprintf(&lines, "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:%s\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n", mid)
	}
	return fmt.Sprintf("v=0\r\no=- %d 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE %s\r\na=extmap-allow-mixed\r\n"+
		"a=ice-ufrag:%s\r\na=ice-pwd:%s\r\na=fingerprint:%s\r\na=setup:actpass\r\n", c.session, strings.Join(mids, " "), c.own.ufrag, c.own.password, c.stack.fingerprint) + lines.String()
}

func (c *connection) writeAudio(lines *strings.Builder) {
	fmt.Fprintf(lines, "a=rtpmap:%d opus/48000/2\r\na=fmtp:%d minptime=10;useinbandfec=1\r\na=extmap:%d urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n",
		opusType, opusType, levelID)
	c.writeFeedback(lines, opusType)
	c.writeShared(lines)
}

func (c *connection) writeVideo(lines *strings.Builder) {
	for _, codec := range c.stack.codecs() {
		types := videoTypes(codec)
		fmt.Fprintf(lines, "a=rtpmap:%[1]d %[3]s/90000\r\na=rtcp-fb:%[1]d nack\r\na=rtcp-fb:%[1]d nack pli\r\na=rtcp-fb:%[1]d ccm fir\r\na=rtpmap:%[2]d rtx/90000\r\na=fmtp:%[2]d apt=%[1]d\r\n",
			types.media, types.repair, strings.ToUpper(string(codec)))
		c.writeFeedback(lines, types.media)
	}
	c.writeShared(lines)
}

func (c *connection) writeFeedback(lines *strings.Builder, payload uint8) {
	if c.stack.simulcast() {
		fmt.Fprintf(lines, "a=rtcp-fb:%d transport-cc\r\n", payload)
	}
}

func (c *connection) writeShared(lines *strings.Builder) {
	fmt.Fprintf(lines, "a=extmap:%d urn:ietf:params:rtp-hdrext:sdes:mid\r\n", midID)
	if c.stack.simulcast() {
		fmt.Fprintf(lines, "a=extmap:%d http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n", transportID)
	}
}

// Layers are named by RID, a single one by SSRC.
func (c *connection) writeLayers(lines *strings.Builder) {
	if only := c.camera[0]; only.rid == "" {
		fmt.Fprintf(lines, "a=ssrc-group:FID %d %d\r\na=ssrc:%d cname:%s\r\na=ssrc:%d cname:%s\r\n", only.ssrc, only.rtxSSRC, only.ssrc, c.cname, only.rtxSSRC, c.cname)
		return
	}
	var rids []string
	for _, s := range c.camera {
		fmt.Fprintf(lines, "a=rid:%s send\r\n", s.rid)
		rids = append(rids, s.rid)
	}
	fmt.Fprintf(lines, "a=extmap:%d urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\na=extmap:%d urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\na=simulcast:send %s\r\n",
		ridID, repairedRIDID, strings.Join(rids, ";"))
}

type user struct{ ufrag, password string }

type slotStream struct {
	mid     string
	audio   bool
	repairs uint32 // the SSRC that this one repairs; 0 for an original
}

type answer struct {
	user        user
	fingerprint []byte // SHA-256
	candidates  []*pair
	streams     map[uint32]slotStream
}

var errAnswer = errors.New("the answer lacks ICE credentials, a SHA-256 fingerprint or a candidate")

// Unknown lines are ignored.
func readAnswer(text string) (*answer, error) {
	a := &answer{streams: make(map[uint32]slotStream)}
	repairs := make(map[uint32]uint32)
	var here slotStream
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if kind, ok := strings.CutPrefix(line, "m="); ok {
			here = slotStream{audio: strings.HasPrefix(kind, "audio")}
		}
		attribute, ok := strings.CutPrefix(line, "a=")
		if !ok {
			continue
		}
		switch key, value, _ := strings.Cut(attribute, ":"); key {
		case "mid":
			here.mid = value
		case "ice-ufrag":
			a.user.ufrag = value
		case "ice-pwd":
			a.user.password = value
		case "fingerprint":
			if hash, ok := strings.CutPrefix(value, "sha-256 "); ok {
				a.fingerprint, _ = hex.DecodeString(strings.ReplaceAll(hash, ":", ""))
			}
		case "candidate":
			a.addCandidate(strings.Fields(value))
		case "ssrc-group":
			if words := strings.Fields(value); len(words) == 3 && words[0] == "FID" && len(repairs) < maxSlotStreams {
				repairs[number(words[2])] = number(words[1])
			}
		case "ssrc":
			if first, _, _ := strings.Cut(value, " "); len(a.streams) < maxSlotStreams {
				a.streams[number(first)] = here
			}
		}
	}
	for ssrc, original := range repairs {
		if s, known := a.streams[ssrc]; known {
			s.repairs = original
			a.streams[ssrc] = s
		}
	}
	if a.user.ufrag == "" || a.user.password == "" || len(a.fingerprint) != 32 || len(a.candidates) == 0 {
		return nil, errAnswer
	}
	return a, nil
}

// RFC 8839 section 5.1, UDP only.
func (a *answer) addCandidate(words []string) {
	if len(words) < 6 || !strings.EqualFold(words[2], "udp") || len(a.candidates) == maxCandidates {
		return
	}
	ip, err := netip.ParseAddr(words[4])
	port, bad := strconv.ParseUint(words[5], 10, 16)
	if err == nil && bad == nil {
		a.candidates = append(a.candidates, newPair(netip.AddrPortFrom(ip, uint16(port)), number(words[3])))
	}
}

func number(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return uint32(n)
}
