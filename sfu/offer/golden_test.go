package offer

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden is a file of testdata with the line ends of SDP.
func golden(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", "\r\n")
}

// answerTo is what a node would say: a slot for each receive m-line.
func answerTo(o *Offer) *Answer {
	a := &Answer{
		SessionID: 4711, Version: 2, Ufrag: "hold", Password: "fast-fast-fast-fast-fast", Fingerprint: "sha-256 " + hash, Setup: "active",
		Candidates: []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::7]:7000"), netip.MustParseAddrPort("203.0.113.7:7000")},
		TCPPort:    7001,
		CanPublish: true, CanSubscribe: true, Slots: map[string]Slot{},
	}
	for i, s := range o.Sections {
		if !s.Receives {
			continue
		}
		name := "slot-" + s.MID
		slot := Slot{SSRC: uint32(1000 + i), Stream: name, Track: name, CNAME: name}
		if !s.Audio {
			slot.RTXSSRC = uint32(2000 + i)
		}
		a.Slots[s.MID] = slot
	}
	return a
}

// superset is an offer of everything that clients might offer. Its answer is the interface of docs/LIMITS.md: all that a node takes.
const superset = "superset"

// TestGoldenAnswers holds the answers to real offers of a page with a microphone, a camera in three layers, a screen, 6 slots for sound and
// 16 for pictures; the later offers have stopped the screen. Browsers have taken these answers. One that changes in its codecs or
// extensions breaks the moves of live connections between releases. One more extension breaks none: to a node that does not answer
// it, a browser goes on without, and with the first keyframe at a node that does, it begins to send it. The streams stay the same.
func TestGoldenAnswers(t *testing.T) {
	for _, name := range []string{"chromium", "chromium-later", "firefox", "firefox-later", superset} {
		o := mustRead(t, golden(t, name+".offer.sdp"))
		answer := o.Answer(answerTo(o))
		if *update {
			path := filepath.Join("testdata", name+".answer.sdp")
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(answer, "\r\n", "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := golden(t, name+".answer.sdp"); answer != want {
			t.Errorf("the answer to %s differs from its file (-update writes it):\n%s", name, firstDifference(answer, want))
		}
	}
}

// TestNothingOfTheReleaseBeforeIsMissing compares with what the releases before this package answered to the same offer.
func TestNothingOfTheReleaseBeforeIsMissing(t *testing.T) {
	o := mustRead(t, golden(t, "chromium.offer.sdp"))
	now, before := negotiated(o.Answer(answerTo(o))), negotiated(golden(t, "chromium.before.sdp"))
	if len(now) != len(before) || len(now) != 25 {
		t.Fatalf("%d and %d m-lines, want 25", len(now), len(before))
	}
	for i := range now {
		for _, line := range before[i] {
			if !slices.Contains(now[i], line) {
				t.Errorf("m-line %d lacks %q", i, line)
			}
		}
	}
}

// TestWhatIsNegotiatedIsDocumented: each codec, format and extension of the superset stands in the protocol's table.
func TestWhatIsNegotiatedIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/LIMITS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range negotiated(golden(t, superset+".answer.sdp")) {
		for _, line := range section {
			_, value, _ := strings.Cut(line, " ")
			if strings.HasPrefix(line, "a=mid:") || strings.HasPrefix(value, "apt=") {
				continue
			}
			if !strings.Contains(string(text), "`"+value+"`") {
				t.Errorf("docs/LIMITS.md does not name %s", value)
			}
		}
	}
}

// negotiated gives the lines of each m-line that a browser compares, sorted: their order does not matter.
func negotiated(answer string) [][]string {
	var sections [][]string
	for section := range strings.SplitSeq(answer[strings.Index(answer, "m="):], "m=") {
		var lines []string
		for line := range strings.SplitSeq(section, "\r\n") {
			for _, key := range []string{"a=mid:", "a=rtpmap:", "a=fmtp:", "a=rtcp-fb:", "a=extmap:"} {
				if strings.HasPrefix(line, key) {
					lines = append(lines, line)
				}
			}
		}
		if lines != nil {
			slices.Sort(lines)
			sections = append(sections, lines)
		}
	}
	return sections
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\r\n"), strings.Split(want, "\r\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		}
	}
	return "it ends too soon"
}
