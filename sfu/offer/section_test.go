package offer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// video is the plain offer with other lines in its second m-line. The client sends on it.
func video(formats string, lines ...string) string {
	return plainOffer[:strings.Index(plainOffer, "m=video")] + "m=video 9 UDP/TLS/RTP/SAVPF " + formats + "\r\na=mid:1\r\na=sendonly\r\n" +
		strings.Join(lines, "\r\n") + "\r\n"
}

// The forms of H.264 as Chromium writes them.
const (
	h264Constrained = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"
	h264Baseline    = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f"
)

func TestCodecs(t *testing.T) {
	h264 := func(payload int, fmtp string) string {
		return fmt.Sprintf("a=rtpmap:%d H264/90000\r\na=fmtp:%[1]d %s", payload, fmtp)
	}
	for _, c := range []struct {
		name, formats string
		lines         []string
		want          []string // name, fmtp, payload type, RTX payload type
	}{
		{"in the client's order", "100 96", []string{"a=rtpmap:96 VP8/90000", h264(100, h264Baseline)}, []string{"H264 " + h264Baseline + " 100 0", "VP8  96 0"}},
		{"with RTX, also named before", "97 96", []string{"a=fmtp:97 apt=96;rtx-time=3000", "a=rtpmap:97 rtx/90000", "a=rtpmap:96 vp8/90000"}, []string{"VP8  96 97"}},
		{"RTX of what is not forwarded", "97 98", []string{"a=rtpmap:98 VP9/90000", "a=fmtp:98 profile-id=2", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=98"}, nil},
		{"RTX that is not a format", "96", []string{"a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96"}, []string{"VP8  96 0"}},
		{"not a format", "98", []string{"a=rtpmap:96 VP8/90000"}, nil},
		{"each form once", "96 97 98 99 100", []string{
			"a=rtpmap:96 VP8/90000", "a=rtpmap:97 VP8/90000", h264(98, "profile-level-id=42E01F; packetization-mode=1"), h264(99, h264Constrained), h264(100, h264Baseline),
		}, []string{"VP8  96 0", "H264 " + h264Constrained + " 98 0", "H264 " + h264Baseline + " 100 0"}},
		{"other forms of H.264", "96 97 98", []string{
			h264(96, "packetization-mode=0;profile-level-id=42e01f"), h264(97, "packetization-mode=1;profile-level-id=f4001f"), "a=rtpmap:98 H264/90000",
		}, nil},
		{"the profiles of hardware, at their own level", "96 97 98 99", []string{
			h264(96, "packetization-mode=1;profile-level-id=42C033"), h264(97, "packetization-mode=1;profile-level-id=640c34"),
			h264(98, "packetization-mode=1;profile-level-id=640033"), h264(99, "packetization-mode=1;profile-level-id=4d0033"),
		}, []string{
			"H264 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c033 96 0", "H264 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640c34 97 0",
			"H264 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640033 98 0", "H264 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d0033 99 0",
		}},
		{"VP9 and AV1 in profile 0", "35 45 98 100 101", []string{
			"a=rtpmap:35 AV1/90000", "a=fmtp:35 level-idx=5;profile=1;tier=0", "a=rtpmap:45 AV1/90000", "a=fmtp:45 level-idx=5;profile=0;tier=0",
			"a=rtpmap:98 VP9/90000", "a=fmtp:98 max-fs=12288;max-fr=60", "a=rtpmap:100 VP9/90000", "a=fmtp:100 profile-id=2", "a=rtpmap:101 rtx/90000", "a=fmtp:101 apt=98",
		}, []string{"AV1 profile=0 45 0", "VP9  98 101"}},
		{"another clock", "96", []string{"a=rtpmap:96 VP8/48000"}, nil},
		{"sound", "111", []string{"a=rtpmap:111 opus/48000/2"}, nil},
		{"payload types that look like RTCP or are none", "72 128 -1 300 x 96", []string{
			"a=rtpmap:72 VP8/90000", "a=rtpmap:128 VP8/90000", "a=rtpmap:300 VP8/90000", "a=rtpmap:x VP8/90000", h264(96, h264Baseline),
		}, []string{"H264 " + h264Baseline + " 96 0"}},
	} {
		s := mustRead(t, video(c.formats, c.lines...)).Sections[1]
		var got []string
		for _, codec := range s.Codecs {
			got = append(got, fmt.Sprintln(codec.Name, codec.Fmtp, codec.PayloadType, codec.RTXPayloadType))
			got[len(got)-1] = strings.TrimSpace(got[len(got)-1])
		}
		if !slices.Equal(got, c.want) || s.Rejected != (c.want == nil) {
			t.Errorf("%s: %q, rejected %v; want %q", c.name, got, s.Rejected, c.want)
		}
	}
}

func TestSectionsShareTheirCodecs(t *testing.T) {
	o := mustRead(t, golden(t, "chromium.offer.sdp"))
	last, before := o.Sections[len(o.Sections)-1].Codecs, o.Sections[len(o.Sections)-2].Codecs
	if &last[0] != &before[0] {
		t.Error("two equal slots have a list of codecs each")
	}
}

// TestDependencyDescriptor is taken in its long form only, and not with VP8 that the client sends.
func TestDependencyDescriptor(t *testing.T) {
	const extmap = "a=extmap:12 " + uriDependencyDescriptor
	vp9First := video("98 96", "a=rtpmap:98 VP9/90000", "a=rtpmap:96 VP8/90000", extmap)
	mixed := func(text string) string {
		return strings.Replace(text, "a=group", "a=extmap-allow-mixed\r\na=group", 1)
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"VP9 is sent":            {mixed(vp9First), true},
		"VP8 is sent":            {mixed(video("96 98", "a=rtpmap:98 VP9/90000", "a=rtpmap:96 VP8/90000", extmap)), false},
		"VP8 is received":        {mixed(strings.Replace(video("96", "a=rtpmap:96 VP8/90000", extmap), "a=mid:1\r\na=sendonly", "a=mid:1\r\na=recvonly", 1)), true},
		"the short form at most": {vp9First, false},
	} {
		o := mustRead(t, c.text)
		answer := o.Answer(&Answer{CanPublish: true, CanSubscribe: true})
		if got := o.Sections[1].Extensions.DependencyDescriptor == 12; got != c.want || strings.Contains(answer, extmap) != c.want {
			t.Errorf("%s: taken %v, want %v:\n%s", name, got, c.want, answer)
		}
	}
}

func TestExtensions(t *testing.T) {
	lines := []string{
		"a=rtpmap:96 VP8/90000",
		"a=extmap:1 " + uriAudioLevel, // Not of video.
		"a=extmap:2/sendonly " + uriRID,
		"a=extmap:3/recvonly " + uriAbsSendTime + " with attributes",
		"a=extmap:4/inactive " + uriRepairedRID,
		"a=extmap:2 " + uriMID, // Taken.
		"a=extmap:15 " + uriMID,
		"a=extmap:0 " + uriMID,
		"a=extmap:x " + uriMID,
		"a=extmap:14/sendrecv " + uriMID,
		"a=extmap:13 " + uriMID, // Again.
		"a=extmap:5",
		"a=extmap:" + "6 urn:unknown",
		"a=extmap:7 " + uriAbsCaptureTime,
		"a=extmap:8 " + uriPlayoutDelay,
		"a=extmap:9 " + uriVideoOrientation,
	}
	o := mustRead(t, video("96", lines...))
	if got, want := o.Sections[1].Extensions, (Extensions{MID: 14, RID: 2, AbsSendTime: 3, AbsCaptureTime: 7, PlayoutDelay: 8, VideoOrientation: 9}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	answer := o.Answer(&Answer{CanPublish: true})
	for _, want := range []string{"a=extmap:2/recvonly " + uriRID, "a=extmap:3/sendonly " + uriAbsSendTime, "a=extmap:14 " + uriMID} {
		if !strings.Contains(answer, want+"\r\n") {
			t.Errorf("the answer lacks %s:\n%s", want, answer)
		}
	}
	if n := strings.Count(answer, "a=extmap:"); n != 6 {
		t.Errorf("the answer has %d extensions, want 6:\n%s", n, answer)
	}
}

func TestSimulcast(t *testing.T) {
	rids := []string{"a=rtpmap:96 VP8/90000", "a=rid:q send", "a=rid:h send pt=96;max-width=640", "a=rid:f send", "a=rid:x recv"}
	for _, c := range []struct {
		simulcast string
		want      []string
		answer    string
	}{
		{"a=simulcast:send f;~h;q", []string{"f", "h", "q"}, "a=simulcast:recv f;~h;q"},
		{"a=simulcast:recv x send q;h,f", []string{"q", "h"}, "a=simulcast:recv q;h"},
		{"a=simulcast:send q;q;nobody;x;~f", []string{"q", "f"}, "a=simulcast:recv q;~f"},
		{"a=simulcast:send", []string{"q", "h", "f"}, "a=simulcast:recv q;h;f"},
	} {
		o := mustRead(t, video("96", append(slices.Clone(rids), c.simulcast)...))
		if got := o.Sections[1].RIDs; !slices.Equal(got, c.want) {
			t.Errorf("%s gave %v, want %v", c.simulcast, got, c.want)
		}
		answer := o.Answer(&Answer{CanPublish: true})
		if !strings.Contains(answer, c.answer+"\r\n") || strings.Count(answer, " recv\r\n") != len(c.want) {
			t.Errorf("%s is answered\n%s", c.simulcast, answer)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("a=rid:%d send", i))
	}
	if got := mustRead(t, video("96", many...)).Sections[1].RIDs; len(got) != maxRIDs {
		t.Errorf("%d encodings, want %d", len(got), maxRIDs)
	}
}

func TestSSRCs(t *testing.T) {
	lines := []string{
		"a=rtpmap:96 VP8/90000", "a=ssrc-group:FID 7 8", "a=ssrc-group:SIM 7 9", "a=ssrc-group:FID 7", "a=ssrc-group:FID x 1",
		"a=ssrc:7 cname:c", "a=ssrc:7 msid:a b", "a=ssrc:8 cname:c", "a=ssrc:4294967296 cname:c", "a=ssrc:-1",
	}
	s := mustRead(t, video("96", lines...)).Sections[1]
	if !slices.Equal(s.SSRCs, []uint32{7, 8}) || !maps.Equal(s.Repairs, map[uint32]uint32{8: 7}) {
		t.Errorf("SSRCs %v, repairs %v", s.SSRCs, s.Repairs)
	}
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("a=ssrc:%d cname:c", i), fmt.Sprintf("a=ssrc-group:FID %d %d", i, i+1))
	}
	if s := mustRead(t, video("96", lines...)).Sections[1]; len(s.SSRCs) != maxSSRCs || len(s.Repairs) != maxSSRCs {
		t.Errorf("%d SSRCs and %d repairs are kept, want %d", len(s.SSRCs), len(s.Repairs), maxSSRCs)
	}
	receives := strings.Replace(video("96", lines...), "a=mid:1\r\na=sendonly", "a=mid:1\r\na=recvonly", 1)
	if s := mustRead(t, receives).Sections[1]; s.SSRCs != nil || s.Repairs != nil {
		t.Errorf("a slot has SSRCs of the client: %+v", s)
	}
}

func TestWhatIsRejected(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Section
	}{
		{"stopped", edited("m=video 9", "m=video 0"), Section{Rejected: true}},
		{"bundled with the first", edited("m=video 9", "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=bundle-only\r\na=x:"), Section{Receives: true}},
		{"outside of BUNDLE", edited("BUNDLE 0 1", "BUNDLE 0"), Section{Receives: true, Rejected: true}},
		{"inactive", edited("a=recvonly", "a=inactive"), Section{}},
		{"without a direction", edited("a=recvonly\r\n", ""), Section{Publishes: true}},
		{"with the session's direction", strings.NewReplacer("a=recvonly\r\n", "", "a=group", "a=recvonly\r\na=group").Replace(plainOffer), Section{Receives: true}},
		{"with another than the session's", edited("a=group", "a=sendonly\r\na=group"), Section{Receives: true}},
	} {
		got := mustRead(t, c.text).Sections[1]
		if (Section{Publishes: got.Publishes, Receives: got.Receives, Rejected: got.Rejected}).flags() != c.want.flags() {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	// Firefox leaves out the mid of a stopped m-line that it recycles.
	nameless := strings.Replace(edited("m=video 9", "m=video 0"), "a=mid:1\r\n", "", 1)
	if answer := mustRead(t, nameless).Answer(&Answer{}); !strings.Contains(answer, "m=video 0 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\n") {
		t.Errorf("answered\n%s", answer)
	}
}

// dataLine is as Chromium and Firefox write it.
const dataLine = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:2\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n"

func TestData(t *testing.T) {
	text := strings.Replace(plainOffer, "BUNDLE 0 1", "BUNDLE 0 1 2", 1) + dataLine
	o := mustRead(t, text)
	if want := (Section{MID: "2", Data: true}); !o.HasData() || !reflect.DeepEqual(o.Sections[2], want) || o.Slots() != 1 {
		t.Errorf("read %+v", o.Sections)
	}
	accepted := "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=setup:active\r\na=mid:2\r\na=sctp-port:5000\r\na=max-message-size:1000\r\n"
	if answer := o.Answer(&Answer{Setup: "active", DataBytes: 1000}); !strings.HasSuffix(answer, accepted) || !strings.Contains(answer, "BUNDLE 0 1 2\r\n") {
		t.Errorf("answered\n%s", answer)
	}
	rejected := "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:2\r\na=inactive\r\n"
	if answer := o.Answer(&Answer{Setup: "active"}); !strings.HasSuffix(answer, rejected) || !strings.Contains(answer, "BUNDLE 0 1\r\n") {
		t.Errorf("without data channels answered\n%s", answer)
	}
	two := mustRead(t, strings.Replace(text, "BUNDLE 0 1 2", "BUNDLE 0 1 2 3", 1)+strings.Replace(dataLine, "mid:2", "mid:3", 1))
	if two.Sections[2].Rejected || !two.Sections[3].Rejected {
		t.Errorf("two lines of data: %+v", two.Sections)
	}
	if stopped := mustRead(t, strings.Replace(text, "m=application 9", "m=application 0", 1)); stopped.HasData() {
		t.Error("a stopped line of data is one")
	}
	// LiveKit's Go SDK offers data alone.
	session, _, _ := strings.Cut(plainOffer, "m=")
	alone := strings.Replace(session, "BUNDLE 0 1", "BUNDLE 2", 1) + dataLine + "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 " + hash + "\r\n"
	o = mustRead(t, alone)
	answer := answerTo(o)
	answer.DataBytes = 1000
	if text := o.Answer(answer); !o.HasData() || !strings.Contains(text, "a=candidate") {
		t.Errorf("data alone is answered\n%s", text)
	}
}

func (s Section) flags() [3]bool { return [3]bool{s.Publishes, s.Receives, s.Rejected} }

func TestNothingOfTheTextIsKept(t *testing.T) {
	text := golden(t, "chromium.offer.sdp")
	bytes := []byte(text)
	o := mustRead(t, unsafe.String(&bytes[0], len(bytes)))
	clear(bytes)
	if want := mustRead(t, text); !reflect.DeepEqual(o, want) {
		t.Error("an offer changes with the text that it was read from")
	}
}

// TestSoundIsAnsweredAsOffered: lost packets are asked for again, in stereo and with silent pauses, if the client can.
func TestSoundIsAnsweredAsOffered(t *testing.T) {
	text := golden(t, "chromium.offer.sdp")
	text = strings.ReplaceAll(text, "a=rtcp-fb:111 transport-cc\r\n", "a=rtcp-fb:111 transport-cc\r\na=rtcp-fb:111 nack\r\n")
	text = strings.ReplaceAll(text, "a=fmtp:111 minptime=10;useinbandfec=1\r\n", "a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1;stereo=1\r\n")
	o := mustRead(t, text)
	answer := o.Answer(answerTo(o))
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Audio && !s.Codecs[0].NACK() {
			t.Errorf("the m-line with mid %s has no NACK", s.MID)
		}
	}
	for line, want := range map[string]int{"a=rtcp-fb:111 nack\r\n": 7, "a=fmtp:111 minptime=10;useinbandfec=1;stereo=1;usedtx=1\r\n": 7} {
		if n := strings.Count(answer, line); n != want {
			t.Errorf("%q stands %d times in the answer, want %d", line, n, want)
		}
	}
}
