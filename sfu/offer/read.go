package offer

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// security holds the ICE and DTLS attributes of the session or of an m-line.
type security struct {
	ufrag, password, fingerprint, setup string
}

// learn keeps the first value of each attribute. Of the fingerprints it keeps the first one whose algorithm this node can check.
func (s *security) learn(key, value string) {
	switch {
	case key == "ice-ufrag" && s.ufrag == "":
		s.ufrag = value
	case key == "ice-pwd" && s.password == "":
		s.password = value
	case key == "setup" && s.setup == "":
		s.setup = value
	case key == "fingerprint":
		if _, n := hashOf(s.fingerprint); n == 0 && value != "" {
			s.fingerprint = value
		}
	}
}

func (s *security) inherit(other security) {
	s.learn("ice-ufrag", other.ufrag)
	s.learn("ice-pwd", other.password)
	s.learn("setup", other.setup)
	s.learn("fingerprint", other.fingerprint)
}

// reader reads an offer line by line. It keeps parts of the text only until finish copies what is needed.
type reader struct {
	limits  Limits
	offer   *Offer
	slots   int
	session string
	bundle  string
	bundled bool
	// transport has the attributes of the session. Those that it lacks are taken from the first m-line that has them.
	transport security
	section   sectionReader
}

// Read reads an offer within limits. Every error wraps ErrBad.
func Read(text string, limits Limits) (*Offer, error) {
	if len(text) > limits.SDPBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", ErrBad, len(text), limits.SDPBytes)
	}
	r := reader{limits: limits, offer: &Offer{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if len(line) < 2 || line[1] != '=' || number == 1 && line != "v=0" || number == 2 && line[0] != 'o' {
			return nil, fmt.Errorf("%w: it is not SDP: line %d is %.32q", ErrBad, number, line)
		}
		if err := r.line(line[0], line[2:]); err != nil {
			return nil, err
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.offer, nil
}

func (r *reader) line(kind byte, value string) error {
	switch kind {
	case 'o':
		if r.session != "" {
			break
		}
		words := strings.SplitN(value, " ", 3)
		if len(words) < 3 || !digits(words[1]) {
			return fmt.Errorf("%w: its o= line has no session id", ErrBad)
		}
		r.session = words[1]
	case 'm':
		if err := r.endSection(); err != nil {
			return err
		}
		if n := r.limits.SlotsPerPeer + maxSections; len(r.offer.Sections) == n {
			return fmt.Errorf("%w: it has more than %d m-lines", ErrBad, n)
		}
		return r.section.begin(value)
	case 'a':
		key, value, _ := strings.Cut(value, ":")
		if r.section.open {
			return r.section.attribute(key, value)
		}
		r.attribute(key, value)
	}
	return nil
}

func (r *reader) attribute(key, value string) {
	switch key {
	case "group":
		if mids, ok := strings.CutPrefix(value, "BUNDLE"); ok && !r.bundled && (mids == "" || mids[0] == ' ') {
			r.bundle, r.bundled = mids, true
		}
	case "sendonly", "sendrecv", "recvonly", "inactive":
		r.section.session = key
	case "extmap-allow-mixed":
		r.offer.mixed = true
	default:
		r.transport.learn(key, value)
	}
}

func (r *reader) endSection() error {
	if !r.section.open {
		return nil
	}
	var before []Codec
	if n := len(r.offer.Sections); n > 0 {
		before = r.offer.Sections[n-1].Codecs
	}
	section, err := r.section.end(before)
	if err != nil {
		return err
	}
	if !r.offer.mixed || section.Publishes && len(section.Codecs) > 0 && section.Codecs[0].Name == "VP8" {
		section.Extensions.DependencyDescriptor = 0
	}
	for i := range r.offer.Sections {
		if section.MID != "" && section.MID == r.offer.Sections[i].MID {
			return fmt.Errorf("%w: the mid %q is used twice", ErrBad, section.MID)
		}
	}
	section.Rejected = section.Rejected || section.Data && r.offer.HasData()
	if section.Receives {
		if r.slots++; r.slots > r.limits.SlotsPerPeer {
			return fmt.Errorf("%w: it asks for more than %d slots", ErrBad, r.limits.SlotsPerPeer)
		}
	}
	r.offer.Sections = append(r.offer.Sections, section)
	if n := len(r.offer.Sections) - r.slots; n > maxSections {
		return fmt.Errorf("%w: it has more than %d m-lines beside the slots", ErrBad, maxSections)
	}
	if !r.section.stopped {
		r.transport.inherit(r.section.transport)
	}
	return nil
}

func (r *reader) finish() error {
	if err := r.endSection(); err != nil {
		return err
	}
	switch {
	case r.session == "":
		return fmt.Errorf("%w: it is not SDP: it has no o= line", ErrBad)
	case len(r.offer.Sections) == 0:
		return fmt.Errorf("%w: it has no m-lines", ErrBad)
	case !r.bundled:
		return fmt.Errorf("%w: it has no a=group:BUNDLE, and this node has one port for all m-lines", ErrBad)
	}
	r.rejectUnbundled()
	t := r.transport
	if !printable(t.ufrag, 4, 256) {
		return fmt.Errorf("%w: it has no a=ice-ufrag of 4 to 256 characters", ErrBad)
	}
	if !printable(t.password, 22, 256) {
		return fmt.Errorf("%w: it has no a=ice-pwd of 22 to 256 characters", ErrBad)
	}
	fingerprint, ok := readFingerprint(t.fingerprint)
	if !ok {
		return fmt.Errorf("%w: it has no a=fingerprint of sha-256, sha-384 or sha-512", ErrBad)
	}
	o := r.offer
	switch t.setup {
	case "", "actpass":
		o.Setup = "actpass"
	case "passive":
		o.Setup = "passive"
	default:
		return fmt.Errorf("%w: it has a=setup:%.16q, want actpass or passive: the node is the client of DTLS", ErrBad, t.setup)
	}
	o.Ufrag, o.Password, o.Fingerprint = strings.Clone(t.ufrag), strings.Clone(t.password), fingerprint
	o.Origin = r.session + " " + t.fingerprint
	return nil
}

// A group names each m-line once, so no more words are read than there are m-lines.
func (r *reader) rejectUnbundled() {
	sections := r.offer.Sections
	inside := make([]bool, len(sections))
	words := 0
	for mid := range strings.FieldsSeq(r.bundle) {
		if words++; words > len(sections) {
			break
		}
		for i := range sections {
			inside[i] = inside[i] || sections[i].MID == mid
		}
	}
	for i := range sections {
		sections[i].Rejected = sections[i].Rejected || !inside[i]
	}
}

// readFingerprint reads "sha-256 00:11:...".
func readFingerprint(text string) (Fingerprint, bool) {
	_, value, _ := strings.Cut(text, " ")
	algorithm, n := hashOf(text)
	if n == 0 || len(value) != 3*n-1 {
		return Fingerprint{}, false
	}
	bytes, err := hex.DecodeString(strings.ReplaceAll(value, ":", ""))
	return Fingerprint{Algorithm: algorithm, Value: bytes}, err == nil && len(bytes) == n
}

// hashOf returns the hash algorithm of a fingerprint and its length in bytes, 0 if the algorithm is not accepted.
func hashOf(fingerprint string) (algorithm string, length int) {
	switch word, _, _ := strings.Cut(fingerprint, " "); {
	case strings.EqualFold(word, "sha-256"):
		return "sha-256", 32
	case strings.EqualFold(word, "sha-384"):
		return "sha-384", 48
	case strings.EqualFold(word, "sha-512"):
		return "sha-512", 64
	}
	return "", 0
}

// printable excludes characters that end a word or a line.
func printable(text string, least, most int) bool {
	if len(text) < least || len(text) > most {
		return false
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func digits(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}
