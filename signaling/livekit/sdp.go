package livekit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxSections is more than the media node accepts.
const maxSections = 128

var errSDP = fmt.Errorf("%w: the offer is not usable SDP", wire.ErrMalformed)

// description is SDP that is cut at its m-lines. Lines end with CRLF.
type description struct {
	session  []string
	sections []section
}

// section is one m-line with what follows it.
type section struct {
	kind, mid, direction string
	// track is the track id of the first a=msid.
	track string
	lines []string
}

func parse(text string) (*description, error) {
	d := &description{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
		case strings.HasPrefix(line, "m="):
			if len(d.sections) == maxSections {
				return nil, fmt.Errorf("%w: it has more than %d media sections", errSDP, maxSections)
			}
			kind, _, _ := strings.Cut(line[len("m="):], " ")
			d.sections = append(d.sections, section{kind: kind, direction: "sendrecv", lines: []string{line}})
		case len(d.sections) == 0:
			d.session = append(d.session, line)
		default:
			d.sections[len(d.sections)-1].add(line)
		}
	}
	if len(d.sections) == 0 {
		return nil, fmt.Errorf("%w: it has no media sections", errSDP)
	}
	return d, nil
}

func (s *section) add(line string) {
	s.lines = append(s.lines, line)
	attribute, found := strings.CutPrefix(line, "a=")
	if !found {
		return
	}
	key, value, _ := strings.Cut(attribute, ":")
	switch key {
	case "mid":
		s.mid = value
	case "sendonly", "sendrecv", "recvonly", "inactive":
		s.direction = key
	case "msid":
		if _, track, found := strings.Cut(value, " "); found && s.track == "" {
			s.track = track
		}
	}
}

func (s *section) sends() bool { return s.direction == "sendonly" || s.direction == "sendrecv" }

func (s *section) receives() bool { return s.direction == "recvonly" }

func (s *section) isMedia() bool { return s.kind == "audio" || s.kind == "video" }

func (s *section) rejected() bool {
	_, rest, _ := strings.Cut(s.lines[0], " ")
	return strings.HasPrefix(rest, "0 ")
}

func (d *description) String() string {
	var text strings.Builder
	write := func(lines []string) {
		for _, line := range lines {
			text.WriteString(line)
			text.WriteString("\r\n")
		}
	}
	write(d.session)
	for i := range d.sections {
		write(d.sections[i].lines)
	}
	return text.String()
}

func (d *description) find(mid string) *section {
	i := slices.IndexFunc(d.sections, func(s section) bool { return s.mid == mid })
	if i < 0 {
		return nil
	}
	return &d.sections[i]
}

// forNode returns the offer as the media node takes it: with the media sections in the order of mids, and without others.
func (d *description) forNode(mids []string) string {
	out := description{session: slices.Clone(d.session)}
	for _, mid := range mids {
		if s := d.find(mid); s != nil {
			out.sections = append(out.sections, *s)
		}
	}
	out.bundle(mids)
	return out.String()
}

// bundle rewrites the group of all media sections.
func (d *description) bundle(mids []string) {
	for i, line := range d.session {
		if strings.HasPrefix(line, "a=group:BUNDLE") {
			d.session[i] = strings.Join(append([]string{"a=group:BUNDLE"}, mids...), " ")
		}
	}
}

// extend returns the order in which the media node has the media sections of the offer. It keeps the sections of before, as JSEP demands
// of offers. At first the last section comes first: the media node fills its slots in order, and LiveKit's Go SDK publishes on the first
// section of a kind that has never sent, though it receives. So what is received lies where nothing is published soon. Data
// channels, if the node takes them, come behind the media of the first offer.
func (d *description) extend(before []string, data bool) []string {
	order := slices.Clone(before)
	add := func(is func(*section) bool) {
		for i := range d.sections {
			if s := &d.sections[i]; is(s) && !slices.Contains(order, s.mid) {
				order = append(order, s.mid)
			}
		}
	}
	add((*section).isMedia)
	if len(before) == 0 {
		slices.Reverse(order)
	}
	if data {
		add(func(s *section) bool { return s.kind == "application" })
	}
	return order
}

// same is equal for offers that negotiate the same: neither the addresses of the client nor the version of the offer count.
func (d *description) same() string {
	var text strings.Builder
	for i, line := range d.session {
		if i != 1 || !strings.HasPrefix(line, "o=") {
			text.WriteString(line + "\n")
		}
	}
	for _, s := range d.sections {
		for i, line := range s.lines {
			switch {
			case i == 0:
				kind, rest, _ := strings.Cut(line, " ")
				port, rest, _ := strings.Cut(rest, " ")
				text.WriteString(kind + " " + rest + " " + strconv.FormatBool(port == "0") + "\n")
			case strings.HasPrefix(line, "c="), strings.HasPrefix(line, "a=rtcp:"), strings.HasPrefix(line, "a=candidate:"), line == "a=end-of-candidates":
			default:
				text.WriteString(line + "\n")
			}
		}
	}
	return text.String()
}

// answerTo puts the sections of the media node's answer into the order of the offer, refuses those that the node has not seen, and has the
// candidates in the first section that is accepted, where clients look for them.
func (d *description) answerTo(offer *description) *description {
	out := &description{session: slices.Clone(d.session)}
	var candidates, accepted []string
	for i := range d.sections {
		s := &d.sections[i]
		s.lines = slices.DeleteFunc(s.lines, func(line string) bool {
			moves := strings.HasPrefix(line, "a=candidate:") || line == "a=end-of-candidates"
			if moves {
				candidates = append(candidates, line)
			}
			return moves
		})
	}
	for _, offered := range offer.sections {
		s := d.find(offered.mid)
		if s == nil {
			s = &section{kind: offered.kind, mid: offered.mid, direction: "inactive", lines: refusal(offered.lines[0], offered.mid)}
		}
		if !s.rejected() {
			accepted = append(accepted, s.mid)
			s.lines = append(s.lines, candidates...)
			candidates = nil
		}
		out.sections = append(out.sections, *s)
	}
	out.bundle(accepted)
	return out
}

// refusal answers the m-line with port 0.
func refusal(line, mid string) []string {
	kind, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, " ")
	lines := []string{kind + " 0 " + rest, "c=IN IP4 0.0.0.0", "a=inactive"}
	if mid != "" {
		lines = append(lines, "a=mid:"+mid)
	}
	return lines
}

// showing returns the answer with only those slots sending that show something. streams names, by mid, the stream and the track of
// a=msid. A later version of an answer has a higher number in its o= line.
func (d *description) showing(streams map[string]string, version uint64) *description {
	out := &description{session: slices.Clone(d.session), sections: slices.Clone(d.sections)}
	for i, line := range out.session {
		if words := strings.Fields(line); strings.HasPrefix(line, "o=") && len(words) > 2 {
			words[2] = strconv.FormatUint(version, 10)
			out.session[i] = strings.Join(words, " ")
		}
	}
	for i := range out.sections {
		s := &out.sections[i]
		if s.direction != "sendonly" {
			continue
		}
		stream, shown := streams[s.mid]
		lines := make([]string, 0, len(s.lines))
		for _, line := range s.lines {
			switch {
			case shown && strings.HasPrefix(line, "a=msid:"):
				line = "a=msid:" + stream
			case !shown && line == "a=sendonly":
				line = "a=inactive"
			case !shown && (strings.HasPrefix(line, "a=msid:") || strings.HasPrefix(line, "a=ssrc")):
				continue
			}
			lines = append(lines, line)
		}
		s.lines = lines
	}
	return out
}
