package connection

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
)

// FuzzStreams lets a client send from SSRCs in any order, as any encoding of any m-line: what is remembered of them is bounded, and each
// encoding has one stream that is heard.
func FuzzStreams(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 2, 1, 0, 0, 3, 2, 1, 0, 4, 3, 9})
	f.Add([]byte{1, 1, 1, 4, 1, 2, 1, 4, 1, 3, 1, 6, 1, 1, 1, 5})
	host, o, cfg := newTransport(), read(f, publishing), configIn(newRoom(f))
	message := &control.Offer{Id: "1", Sdp: publishing, Senders: []*control.Sender{
		{Mid: "0", Source: control.Source_SOURCE_CAMERA}, {Mid: "1", Source: control.Source_SOURCE_MICROPHONE},
	}}
	payload := make([]byte, 40)
	f.Fuzz(func(t *testing.T, order []byte) {
		c, err := Open(host, o, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Answer(message, o); err != nil {
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
