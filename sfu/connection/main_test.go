package connection

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noSocket is one that nothing comes from.
type noSocket struct{}

func (noSocket) Readers() int { return 1 }
func (noSocket) Receive(int, func([]byte, egress.Address), func(from egress.Address)) error {
	return net.ErrClosed
}
func (noSocket) Write(b []byte, _ egress.Address) (int, error) { return len(b), nil }
func (noSocket) Close() error                                  { return nil }

// slotLine is an m-line of a slot.
func slotLine(mid, direction string) string {
	return "m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:" + mid + "\r\na=" + direction + "\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"
}

const fingerprint = "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF"

// publishing is an offer of a camera and a microphone.
const publishing = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " + fingerprint + "\r\na=setup:actpass\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n" +
	"a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:2 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n" +
	"a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\na=ssrc-group:FID 1 2\r\na=ssrc:1 cname:x\r\na=ssrc:2 cname:x\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n" +
	"a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\n"

// nobody owns the connections of tests.
type nobody struct{}

func (nobody) Gone() bool                                       { return false }
func (nobody) PathChanged()                                     {}
func (nobody) SendersChanged()                                  {}
func (nobody) RestsChanged()                                    {}
func (nobody) Unreached()                                       {}
func (nobody) PreparedChanged()                                 {}
func (nobody) Broke()                                           {}
func (nobody) StateChanged(*Connection, control.TransportState) {}

func newTransport() *transport.Transport {
	return transport.New(noSocket{}, panics.New(), slog.New(slog.DiscardHandler))
}

// configIn is that of alice's connections.
func configIn(room *forward.Room) Config {
	return Config{Room: room, Owner: nobody{}, Peer: "alice", CanPublish: true, CanSubscribe: true, Log: slog.New(slog.DiscardHandler)}
}

// newRoom runs a room until the test ends.
func newRoom(t testing.TB) *forward.Room {
	t.Helper()
	room := forward.NewRoom(forward.Config{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- room.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return room
}

func read(t testing.TB, sdp string) *offer.Offer {
	t.Helper()
	o, err := offer.Read(sdp, offer.Limits{SlotsPerPeer: 64, SDPBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// open makes a connection that has no client, and closes it when the test ends.
func open(t testing.TB, o *offer.Offer) *Connection {
	t.Helper()
	c, err := Open(newTransport(), o, configIn(newRoom(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
