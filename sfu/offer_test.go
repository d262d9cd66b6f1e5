package sfu

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// plainOffer is the shortest offer that is answered.
const plainOffer = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 00:11\r\na=setup:actpass\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"

func TestReadOffer(t *testing.T) {
	limits := DefaultConfig().Limits
	shape, err := readOffer(plainOffer, limits)
	if err != nil {
		t.Fatal(err)
	}
	want := []section{{mid: "0", audio: true, publishes: true}, {mid: "1", receives: true}}
	if len(shape.sections) != 2 || shape.sections[0] != want[0] || shape.sections[1] != want[1] || shape.slots() != 1 {
		t.Errorf("sections are %+v, want %+v", shape.sections, want)
	}
	for name, other := range map[string]string{
		"another session":     strings.Replace(plainOffer, "o=- 42 ", "o=- 43 ", 1),
		"another certificate": strings.Replace(plainOffer, "00:11", "00:12", 1),
	} {
		if got, err := readOffer(other, limits); err != nil || got.origin == shape.origin {
			t.Errorf("an offer of %s has the origin %q, %v", name, got.origin, err)
		}
	}
	restarted := strings.NewReplacer("o=- 42 2 ", "o=- 42 3 ", "abcd\r\n", "efgh\r\n").Replace(plainOffer)
	if got, err := readOffer(restarted, limits); err != nil || got.origin != shape.origin {
		t.Errorf("an ICE restart has the origin %q, want %q (%v)", got.origin, shape.origin, err)
	}
}

func TestOffersExtendTheOneBefore(t *testing.T) {
	before := []section{{mid: "0", audio: true, publishes: true}, {mid: "1"}, {mid: "2", receives: true}}
	for _, c := range []struct {
		name  string
		lines []section
		want  bool
	}{
		{"the same", before, true},
		{"more", append(slices.Clone(before), section{mid: "3"}), true},
		{"another direction", []section{{mid: "0", audio: true}, {mid: "1"}, {mid: "2", publishes: true}}, true},
		{"a stopped line used again", []section{before[0], {mid: "7", receives: true}, before[2]}, true},
		{"fewer", before[:2], false},
		{"swapped", []section{before[2], before[1], before[0]}, false},
		{"another kind", []section{{mid: "0", publishes: true}, before[1], before[2]}, false},
	} {
		if err := (offerShape{sections: c.lines}).extends(before); (err == nil) != c.want || err != nil && !errors.Is(err, ErrBadOffer) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestReadOfferRefuses(t *testing.T) {
	limits := Limits{SDPBytes: 2000, SlotsPerPeer: 1}
	for name, text := range map[string]string{
		"nothing":         "",
		"too much":        plainOffer + strings.Repeat("a=x\r\n", 400),
		"no m-lines":      strings.Split(plainOffer, "m=")[0],
		"no mid":          strings.Replace(plainOffer, "a=mid:1\r\n", "", 1),
		"a mid twice":     strings.Replace(plainOffer, "a=mid:1", "a=mid:0", 1),
		"a long mid":      strings.Replace(plainOffer, "a=mid:1", "a=mid:"+strings.Repeat("1", maxMidBytes+1), 1),
		"two directions":  strings.Replace(plainOffer, "a=recvonly", "a=recvonly\r\na=sendrecv", 1),
		"data":            strings.Replace(plainOffer, "m=video", "m=application", 1),
		"no fingerprint":  strings.Replace(plainOffer, "a=fingerprint:sha-256 00:11\r\n", "", 1),
		"no ICE":          strings.Replace(plainOffer, "a=ice-pwd", "a=x-pwd", 1),
		"too many slots":  strings.Replace(plainOffer, "a=sendonly", "a=recvonly", 1),
		"not SDP, though": "hello",
	} {
		if _, err := readOffer(text, limits); !errors.Is(err, ErrBadOffer) {
			t.Errorf("an offer with %s: %v, want ErrBadOffer", name, err)
		}
	}
}

func TestTrimKeepsWhatIsForwarded(t *testing.T) {
	video := "m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 100 101 102 103 104\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=recvonly\r\n" +
		"a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack pli\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n" +
		"a=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\na=rtcp-fb:98 nack\r\na=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n" +
		"a=rtpmap:100 H264/90000\r\na=fmtp:100 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42E01F\r\n" +
		"a=rtpmap:101 rtx/90000\r\na=fmtp:101 apt=100\r\n" +
		"a=rtpmap:102 H264/90000\r\na=fmtp:102 packetization-mode=0;profile-level-id=42e01f\r\n" +
		"a=rtpmap:103 red/90000\r\na=rtpmap:104 ulpfec/90000\r\n"
	shape, err := readOffer(plainOffer[:strings.Index(plainOffer, "m=video")]+video, DefaultConfig().Limits)
	if err != nil {
		t.Fatal(err)
	}
	got := shape.sdp[strings.Index(shape.sdp, "m=video"):]
	want := "m=video 9 UDP/TLS/RTP/SAVPF 96 97 100 101\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=recvonly\r\n" +
		"a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack pli\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n" +
		"a=rtpmap:100 H264/90000\r\na=fmtp:100 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42E01F\r\n" +
		"a=rtpmap:101 rtx/90000\r\na=fmtp:101 apt=100\r\n"
	if got != want {
		t.Errorf("trimmed to\n%s\nwant\n%s", got, want)
	}
	unknown := strings.Replace(plainOffer, "VP8/90000", "XX8/90000", 1)
	if shape, err := readOffer(unknown, DefaultConfig().Limits); err != nil || shape.sdp != unknown {
		t.Errorf("an m-line of unknown codecs became\n%s (%v)", shape.sdp, err)
	}
}

func FuzzOffer(f *testing.F) {
	f.Add(plainOffer)
	f.Add(strings.ReplaceAll(plainOffer, "\r\n", "\n"))
	f.Add("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=audio 9 X 0\r\na=mid:\r\n")
	limits := Limits{SDPBytes: 4096, SlotsPerPeer: 4}
	f.Fuzz(func(t *testing.T, text string) {
		shape, err := readOffer(text, limits)
		if err != nil {
			if !errors.Is(err, ErrBadOffer) {
				t.Fatalf("%v does not wrap ErrBadOffer", err)
			}
			return
		}
		if len(text) > limits.SDPBytes || shape.slots() > limits.SlotsPerPeer || len(shape.sections) == 0 {
			t.Fatalf("an offer past the limits was accepted: %+v", shape)
		}
		for _, s := range shape.sections {
			if s.mid == "" || len(s.mid) > maxMidBytes || s.publishes && s.receives {
				t.Fatalf("a section is %+v", s)
			}
		}
	})
}
