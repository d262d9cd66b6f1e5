package offer

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plenty are limits that no test offer reaches.
func plenty() Limits { return Limits{SlotsPerPeer: 64, SDPBytes: 256 << 10} }

const hash = "11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00"

// plainOffer is the shortest offer that is answered with media both ways.
const plainOffer = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " + hash + "\r\na=setup:actpass\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"

// edited is the plain offer with one text in place of another.
func edited(old, with string) string { return strings.Replace(plainOffer, old, with, 1) }

func mustRead(t testing.TB, text string) *Offer {
	t.Helper()
	o, err := Read(text, plenty())
	if err != nil {
		t.Fatal(err)
	}
	return o
}
