package offer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type sectionReader struct {
	open       bool
	section    Section
	formats    string
	closed     bool // port 0
	bundleOnly bool
	stopped    bool // by the client
	ids        uint16
	transport  security
	simulcast  string // the send side of a=simulcast
	rids       []string
	payloads   payloadTable

	// direction is the m-line's; session is of those without one.
	direction, session string
}

// begin reads "audio 9 UDP/TLS/RTP/SAVPF 111 63".
func (r *sectionReader) begin(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	if kind == "application" {
		return r.beginData(rest)
	}
	if kind != "audio" && kind != "video" {
		return fmt.Errorf("%w: an m-line is of the kind %.32q, want audio, video or application", ErrBad, kind)
	}
	port, rest, _ := strings.Cut(rest, " ")
	protocol, formats, _ := strings.Cut(rest, " ")
	if !digits(port) || !strings.HasSuffix(protocol, "RTP/SAVPF") {
		return fmt.Errorf("%w: an m-line has the port %.32q and the protocol %.32q, want UDP/TLS/RTP/SAVPF", ErrBad, port, protocol)
	}
	first, _, _ := strings.Cut(formats, " ")
	format, _ := payloadType(first)
	*r = sectionReader{
		open: true, section: Section{Audio: kind == "audio", format: format}, formats: formats, closed: port == "0", rids: r.rids[:0], session: r.session,
	}
	return nil
}

// beginData reads "9 UDP/DTLS/SCTP webrtc-datachannel" (RFC 8841 section 4).
func (r *sectionReader) beginData(line string) error {
	port, rest, _ := strings.Cut(line, " ")
	protocol, format, _ := strings.Cut(rest, " ")
	if !digits(port) || protocol != dataProtocol || format != dataFormat {
		return fmt.Errorf("%w: an m-line has the protocol and format %.48q, want %s %s", ErrBad, rest, dataProtocol, dataFormat)
	}
	*r = sectionReader{open: true, section: Section{Data: true}, closed: port == "0", rids: r.rids[:0]}
	return nil
}

func (r *sectionReader) attribute(key, value string) error {
	s := &r.section
	switch key {
	case "mid":
		if s.MID != "" {
			break
		}
		if !printable(value, 1, maxNameBytes) {
			return fmt.Errorf("%w: an m-line has the mid %.32q, want 1 to %d characters", ErrBad, value, maxNameBytes)
		}
		s.MID = value
	case "sendonly", "sendrecv", "recvonly", "inactive":
		if r.direction != "" && r.direction != key {
			return fmt.Errorf("%w: the m-line with mid %q has two directions", ErrBad, s.MID)
		}
		r.direction = key
	case "bundle-only":
		r.bundleOnly = true
	case "rtpmap", "fmtp", "rtcp-fb":
		r.payloads.learn(key, value)
	case "extmap":
		s.learnExtension(value, &r.ids)
	case "rid":
		if id, rest, _ := strings.Cut(value, " "); len(r.rids) < maxRIDs && (rest == "send" || strings.HasPrefix(rest, "send ")) && printable(id, 1, maxNameBytes) {
			r.rids = append(r.rids, id)
		}
	case "simulcast":
		if r.simulcast == "" {
			r.simulcast = sent(value)
		}
	case "ssrc":
		first, _, _ := strings.Cut(value, " ")
		if ssrc, err := strconv.ParseUint(first, 10, 32); err == nil && len(s.SSRCs) < maxSSRCs && !slices.Contains(s.SSRCs, uint32(ssrc)) {
			s.SSRCs = append(s.SSRCs, uint32(ssrc))
		}
	case "ssrc-group":
		s.learnRepair(value)
	default:
		r.transport.learn(key, value)
	}
	return nil
}

// learnRepair reads "FID original repair".
func (s *Section) learnRepair(group string) {
	first, rest, _ := strings.Cut(group, " ")
	of, by, _ := strings.Cut(rest, " ")
	original, err := strconv.ParseUint(of, 10, 32)
	repair, also := strconv.ParseUint(by, 10, 32)
	if first != "FID" || err != nil || also != nil || len(s.Repairs) == maxSSRCs {
		return
	}
	if s.Repairs == nil {
		s.Repairs = map[uint32]uint32{}
	}
	s.Repairs[uint32(repair)] = uint32(original)
}

// sent is what the client sends of "send q;h;f recv x".
func sent(simulcast string) string {
	next := false
	for word := range strings.FieldsSeq(simulcast) {
		if next {
			return word
		}
		next = word == "send"
	}
	return ""
}

// direct sets the direction of the m-line. An m-line without a direction has that of the session, by default sendrecv (RFC 8866 section
// 6.7). The node treats sendrecv as sendonly.
func (r *sectionReader) direct() {
	switch cmp.Or(r.direction, r.session, "sendrecv") {
	case "sendonly", "sendrecv":
		r.section.Publishes = true
	case "recvonly":
		r.section.Receives = true
	}
}

// Equal codecs are shared: with many slots they are most of what is kept.
func (r *sectionReader) end(before []Codec) (Section, error) {
	s := &r.section
	r.open = false
	if !s.Data {
		r.direct()
	}
	r.stopped = r.closed && !r.bundleOnly
	if s.MID == "" && !r.stopped {
		return Section{}, fmt.Errorf("%w: an m-line has no mid", ErrBad)
	}
	s.MID = strings.Clone(s.MID)
	if s.Data {
		return Section{MID: s.MID, Data: true, Rejected: r.stopped}, nil
	}
	var room [8]Codec
	switch codecs := r.payloads.codecs(room[:0], r.formats, s.Audio); {
	case slices.Equal(codecs, before):
		s.Codecs = before
	default:
		s.Codecs = slices.Clone(codecs)
	}
	if r.stopped {
		s.Publishes, s.Receives = false, false
	}
	s.Rejected = r.stopped || len(s.Codecs) == 0
	if !s.Publishes {
		s.SSRCs, s.Repairs = nil, nil
		return *s, nil
	}
	r.learnRIDs()
	return *s, nil
}

// As in a=simulcast, one alternative of each ("q,a;h").
func (r *sectionReader) learnRIDs() {
	s := &r.section
	if r.simulcast == "" {
		for _, rid := range r.rids {
			s.addRID(rid, false)
		}
		return
	}
	for encoding := range strings.SplitSeq(r.simulcast, ";") {
		first, _, _ := strings.Cut(encoding, ",")
		rid, paused := strings.CutPrefix(first, "~")
		if slices.Contains(r.rids, rid) {
			s.addRID(rid, paused)
		}
	}
}

func (s *Section) addRID(rid string, paused bool) {
	if slices.Contains(s.RIDs, rid) {
		return
	}
	if paused {
		s.paused |= 1 << len(s.RIDs)
	}
	s.RIDs = append(s.RIDs, strings.Clone(rid))
}
