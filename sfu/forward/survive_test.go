package forward

import (
	"testing"
	"time"

	"github.com/pion/rtp"
)

// landmine is a writer that panics.
type landmine struct{}

func (landmine) WriteRTP(*rtp.Header, []byte) (int, error) { panic("of a test") }

// TestOneBadPacketDropsOneTrack: whatever it breaks, the room goes on. The second publisher's frames come without their end.
func TestOneBadPacketDropsOneTrack(t *testing.T) {
	for name, ended := range map[string]bool{"a whole frame": true, "a frame whose end is lost": false} {
		t.Run(name, func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				alice, eve := st.camera("alice", "", 180), st.camera("eve", "", 180)
				view := st.slot("bob", "1", KindVideo)
				view.slot.Ready()
				st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
				broken := st.room.AddSlot(SlotConfig{Peer: "carol", Mid: "1", Kind: KindVideo, Writer: landmine{}, SSRC: 1, Codecs: []Codec{vp8}})
				broken.Ready()
				st.room.SetView("carol", []Want{{Peer: "eve", Source: SourceCamera, Width: 320, Height: 180}})
				for i := range 20 {
					alice.burst(i == 0, 3)
					st.push(eve.layer, rtp.Header{
						Version: 2, Marker: ended, PayloadType: vp8.PayloadType, SequenceNumber: uint16(i), Timestamp: uint32(i) * 3600, SSRC: 1,
					}, vp8Payload(true, true, uint16(i), uint8(i), 180, 1, 1000))
					st.pass(40 * time.Millisecond)
				}
				if states := st.room.States(); len(states["eve"].Layers) != 0 || len(states["alice"].Layers) != 1 {
					t.Errorf("eve has %d tracks and alice %d, want 0 and 1", len(states["eve"].Layers), len(states["alice"].Layers))
				}
				if n := len(view.take()); n != 60 {
					t.Errorf("%d packets of another publisher came, want 60", n)
				}
			})
		})
	}
}
