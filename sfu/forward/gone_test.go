package forward

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// TestWhatComesAfterRemovePeerIsRefused: the connection of who was removed adds a slot and a layer. Nothing stays of
// them, and who has returned under the same id keeps what is its own.
func TestWhatComesAfterRemovePeerIsRefused(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		gone := func() bool { return true }
		addLate := func() {
			slot := st.room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindVideo, Writer: &sink{}, Codecs: []Codec{vp8}, Gone: gone})
			slot.Ready()
			slot.NACK([]uint16{1})
			slot.KeyframeRequested()
			layer := st.room.AddLayer(LayerConfig{Peer: "bob", Source: SourceCamera, Kind: KindVideo, Codec: vp8, Gone: gone})
			st.push(layer, rtp.Header{Version: 2, PayloadType: vp8.PayloadType}, vp8Payload(true, true, 1, 1, 180, 0, 50))
			layer.SenderReport(1, 1, time.Now())
			synctest.Wait()
			slot.Close()
			layer.Close()
			synctest.Wait()
		}
		st.slot("bob", "1", KindVideo)
		st.room.RemovePeer("bob")
		addLate()
		r := st.room
		if n := len(r.members.subscribers) + len(r.members.publications) + len(r.members.layers) + len(r.shared.tables) + len(r.members.clocks); n != 0 || len(r.frames.layers) != 0 {
			t.Errorf("the room keeps %v, %v and %v of who was removed", r.members.subscribers, r.members.publications, r.shared.tables)
		}
		st.camera("alice", "", 180)
		st.slot("alice", "1", KindVideo)
		st.slot("bob", "1", KindVideo)
		st.camera("bob", "", 180)
		addLate()
		st.shows("bob", "alice")
		st.shows("alice", "bob")
		if n := len(r.members.layers); n != 2 {
			t.Errorf("%d layers, want those of alice and of bob's return", n)
		}
	})
}
