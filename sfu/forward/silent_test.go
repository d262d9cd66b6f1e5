package forward

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// TestPaddingKeepsNoLayerAlive: a browser that has stopped a layer goes on probing with padding and with old packets of
// it. Neither is a picture, so viewers are given another layer.
func TestPaddingKeepsNoLayerAlive(t *testing.T) {
	for name, send := range map[string]func(c *camera, old uint16){
		"padding": func(c *camera, _ uint16) {
			c.st.push(c.layer, rtp.Header{
				Version: 2, Padding: true, PaddingSize: 200, PayloadType: vp8.PayloadType, SequenceNumber: c.sequence, Timestamp: c.timestamp, SSRC: 1,
			}, nil)
			c.sequence++
		},
		"old packets": func(c *camera, old uint16) {
			c.st.push(c.layer, rtp.Header{
				Version: 2, PayloadType: vp8.PayloadType, SequenceNumber: old, Timestamp: c.timestamp - 90000, SSRC: 1,
			}, vp8Payload(false, false, c.pictureID, c.tl0, c.height, 1, 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				alice := st.simulcast("alice")
				view := st.slot("bob", "1", KindVideo)
				view.slot.Ready()
				st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
				alice.run(2 * time.Second)
				view.take()
				low, high := alice.layers[1], alice.layers[2]
				for i := range 200 { // 8 s of 40 ms
					low.burst(low.asked() > 0, 3)
					if i%3 == 0 {
						send(high, high.sequence-uint16(100+i))
					}
					st.pass(40 * time.Millisecond)
				}
				synctest.Wait()
				if n := len(view.take()); n < 300 {
					t.Errorf("%d packets in 8 s, of 3 in every 40 ms that the lower layer sent", n)
				}
			})
		})
	}
}
