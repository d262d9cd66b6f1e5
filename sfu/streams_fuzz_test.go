package sfu

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// publishing is an offer of a camera and a microphone.
const publishing = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " + plainFingerprint + "\r\na=setup:actpass\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n" +
	"a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:2 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n" +
	"a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\na=ssrc-group:FID 1 2\r\na=ssrc:1 cname:x\r\na=ssrc:2 cname:x\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n" +
	"a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\n"

// FuzzStreams lets a client send from SSRCs in any order, as any encoding of any m-line: what is remembered of them is bounded, and each
// encoding has one stream that is heard.
func FuzzStreams(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 2, 1, 0, 0, 3, 2, 1, 0, 4, 3, 9})
	f.Add([]byte{1, 1, 1, 4, 1, 2, 1, 4, 1, 3, 1, 6, 1, 1, 1, 5})
	s := newStage(f, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	o, err := offer.Read(publishing, offerLimits(s.node.cfg.Limits))
	if err != nil {
		f.Fatal(err)
	}
	cfg := s.looseConfig()
	message := &control.Offer{Id: "1", Sdp: publishing, Senders: []*control.Sender{
		{Mid: "0", Source: control.Source_SOURCE_CAMERA}, {Mid: "1", Source: control.Source_SOURCE_MICROPHONE},
	}}
	payload := make([]byte, 40)
	f.Fuzz(func(t *testing.T, order []byte) {
		c, err := connect(s.node.transport, o, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if _, err := c.answer(message, o); err != nil {
			t.Fatal(err)
		}
		for number := uint16(0); len(order) >= 4; order, number = order[4:], number+1 {
			header := &rtp.Header{
				Version: 2, SequenceNumber: number, SSRC: uint32(binary.BigEndian.Uint16(order)), PayloadType: []uint8{96, 97, 111, 5}[order[2]%4],
			}
			for id, bit := range map[uint8]byte{1: 1, 2: 2, 3: 4} {
				if order[3]&bit != 0 {
					if err := header.SetExtension(id, []byte{"012qh"[order[3]>>4%5]}); err != nil {
						t.Fatal(err)
					}
				}
			}
			packet, err := (&rtp.Packet{Header: *header, Payload: payload}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			c.RTP(header, packet, time.Now())
		}
		u := c.uplink
		u.mu.Lock()
		defer u.mu.Unlock()
		heard := map[identity]bool{}
		for ssrc, s := range u.streams {
			of := identity{mid: s.mid, rid: s.rid}
			if s.original == nil && !s.replaced {
				if heard[of] {
					t.Fatalf("two streams are heard of %+v", of)
				}
				heard[of] = true
			}
			if s.ssrc != ssrc {
				t.Fatalf("the stream of %d is that of %d", ssrc, s.ssrc)
			}
		}
		if len(u.ssrcs.known) > maxNamedStreams {
			t.Fatalf("%d streams are remembered", len(u.ssrcs.known))
		}
	})
}
