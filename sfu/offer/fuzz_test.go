package offer

import (
	"errors"
	"strings"
	"testing"

	"github.com/pion/sdp/v3"
)

// FuzzAnswer answers offers that a client made up: nothing may panic, what is accepted stays within the limits, and the answer
// is SDP with the m-lines of the offer.
func FuzzAnswer(f *testing.F) {
	f.Add(plainOffer)
	f.Add(strings.ReplaceAll(plainOffer, "\r\n", "\n"))
	f.Add(video("96 97 98", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=rtcp-fb:* nack pli", "a=extmap:3/sendonly "+uriRID,
		"a=rid:q send", "a=rid:h send", "a=simulcast:send q;~h", "a=ssrc-group:FID 1 2", "a=ssrc:1 cname:x"))
	f.Add("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=audio 9 X 0\r\na=mid:\r\n")
	f.Add(video("96 98 45 102 104", "a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=1;profile-level-id=640c34", "a=rtpmap:98 VP9/90000",
		"a=fmtp:98 profile-id=0", "a=rtpmap:45 AV1/90000", "a=fmtp:45 level-idx=5;profile=0;tier=0", "a=extmap:4 "+uriVideoOrientation))
	f.Add(strings.Replace(plainOffer, "BUNDLE 0 1", "BUNDLE 0 1 2", 1) + dataLine)
	limits := Limits{SDPBytes: 4096, SlotsPerPeer: 4}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Read(text, limits)
		if err != nil {
			if !errors.Is(err, ErrBad) {
				t.Fatalf("%v does not wrap ErrBad", err)
			}
			return
		}
		if len(text) > limits.SDPBytes || o.Slots() > limits.SlotsPerPeer || len(o.Sections) == 0 || len(o.Sections) > limits.SlotsPerPeer+maxSections {
			t.Fatalf("an offer past the limits was accepted: %+v", o)
		}
		told := answerTo(o)
		told.DataBytes = 1000
		answer := o.Answer(told)
		var parsed sdp.SessionDescription
		if err := parsed.UnmarshalString(answer); err != nil {
			t.Fatalf("the answer is not SDP: %v\n%s", err, answer)
		}
		if len(parsed.MediaDescriptions) != len(o.Sections) {
			t.Fatalf("the answer has %d m-lines, want %d:\n%s", len(parsed.MediaDescriptions), len(o.Sections), answer)
		}
		for i, media := range parsed.MediaDescriptions {
			s := &o.Sections[i]
			mid, _ := media.Attribute("mid")
			if mid != s.MID || (media.MediaName.Media == "audio") != s.Audio || (media.MediaName.Media == "application") != s.Data || (media.MediaName.Port.Value == 0) != s.Rejected {
				t.Fatalf("m-line %d is answered with %+v, want %+v", i, media, s)
			}
			if len(s.Codecs) > 8 || len(s.RIDs) > maxRIDs || len(s.SSRCs) > maxSSRCs || len(s.Repairs) > maxSSRCs || s.Publishes && s.Receives {
				t.Fatalf("m-line %d is %+v", i, s)
			}
		}
	})
}
