package connection

import (
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestACodecChangesLongAfterTheLastChange: the sequence numbers have wrapped meanwhile. Only what the change overtook is left out.
func TestACodecChangesLongAfterTheLastChange(t *testing.T) {
	sdp := strings.NewReplacer("SAVPF 96 97", "SAVPF 96 97 98", "a=rtpmap:97 ", "a=rtpmap:98 VP9/90000\r\na=rtpmap:97 ").Replace(publishing)
	o := read(t, sdp)
	c := open(t, o)
	if _, err := c.Answer(&control.Offer{Id: "1", Sdp: sdp}, o); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for _, sent := range []struct {
		after       time.Duration
		number      uint16
		payloadType uint8
		want        string
	}{
		{0, 100, 96, "video/VP8"},
		{time.Second, 101, 98, "video/VP9"},
		{3 * time.Second, 99, 96, "video/VP9"}, // It was overtaken.
		{5 * time.Minute, 101 + 40_000, 96, "video/VP8"},
		{10 * time.Minute, 101 + 15_000, 98, "video/VP9"}, // 40,536 on
	} {
		header := &rtp.Header{Version: 2, SSRC: 1, SequenceNumber: sent.number, PayloadType: sent.payloadType}
		packet, err := (&rtp.Packet{Header: *header, Payload: make([]byte, 40)}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.RTP(header, packet, begun.Add(sent.after))
		if got := c.uplink.streams[1].codec.MimeType; got != sent.want {
			t.Errorf("after %v the stream is of %s, want %s", sent.after, got, sent.want)
		}
	}
}
