package forward

import (
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"

	"github.com/pion/rtp"
)

// TestExtensionsArePassedOn: what a publisher says in the extensions that both sides negotiated reaches the subscriber under
// the subscriber's ids, and nothing else does.
func TestExtensionsArePassedOn(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		layer := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8, Passed: parse.PassedExtensions{0, 5, 13}})
		bob := &screenful{}
		st.room.AddSlot(SlotConfig{
			Peer: "bob", Mid: "1", Kind: KindVideo, Writer: bob, SSRC: 1, Codecs: []Codec{vp8}, Passed: parse.PassedExtensions{7, 0, 4},
		}).Ready()
		header := rtp.Header{Version: 2, Marker: true, PayloadType: vp8.PayloadType, SequenceNumber: 1, SSRC: 1}
		for id, payload := range map[uint8][]byte{5: {0, 1, 2}, 7: {9}, 13: {0x03}} {
			if err := header.SetExtension(id, payload); err != nil {
				t.Fatal(err)
			}
		}
		st.push(layer, header, vp8Payload(true, true, 1, 1, 180, 0, 100))
		st.pass(33 * time.Millisecond)
		got := bob.take()
		if len(got) != 1 {
			t.Fatalf("%d packets", len(got))
		}
		if ids := got[0].GetExtensionIDs(); len(ids) != 1 || !bytes.Equal(got[0].GetExtension(4), []byte{0x03}) {
			t.Errorf("the extensions are %v, %x", ids, got[0].GetExtension(4))
		}
	})
}
