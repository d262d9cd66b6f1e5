package forward

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"

	"github.com/pion/rtcp"
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

// TestWhoBreaksTheRoomsCareLosesWhatItHas: reports, requests for keyframes and tables are made beside the packets. The room and the
// others go on, and the one concerned is named.
func TestWhoBreaksTheRoomsCareLosesWhatItHas(t *testing.T) {
	type faults struct{ report, keyframe, table bool }
	for name, fault := range map[string]faults{"reports": {report: true}, "keyframes": {keyframe: true}, "tables": {table: true}} {
		t.Run(name, func(t *testing.T) {
			guard := panics.New()
			broken := map[PeerID]bool{}
			var mu sync.Mutex // guards broken
			cfg := Config{Panics: guard, OnBroken: func(p PeerID) { mu.Lock(); defer mu.Unlock(); broken[p] = true }}
			onStage(t, cfg, func(st *stage) {
				alice, eve := st.camera("alice", "", 180), st.camera("eve", "", 180)
				view := st.slot("bob", "1", KindVideo)
				view.slot.Ready()
				st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
				carol := SlotConfig{Peer: "carol", Mid: "1", Kind: KindVideo, Writer: silent{}, SSRC: 1, Codecs: []Codec{vp8}}
				if fault.report {
					carol.WriteRTCP = func([]rtcp.Packet) error { panic("of a test") }
				}
				st.room.post(func() {
					if inner := st.room.cfg.OnSlots; fault.table {
						st.room.cfg.OnSlots = func(p PeerID) {
							if inner(p); p == "carol" {
								panic("of a test")
							}
						}
					}
				})
				if !fault.keyframe {
					st.room.AddSlot(carol).Ready()
					st.room.SetView("carol", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
				}
				for i := range 200 {
					alice.burst(i == 0, 3)
					eve.burst(i == 0, 1)
					if i == 50 && fault.keyframe {
						st.room.post(func() {
							eve.layer.cfg.SendPLI = func() { panic("of a test") }
							eve.layer.requests.pending = true
						})
					}
					st.pass(40 * time.Millisecond)
				}
				who := PeerID("carol")
				if fault.keyframe {
					who = "eve"
				}
				mu.Lock()
				defer mu.Unlock()
				if !broken[who] || len(broken) != 1 || guard.Count() == 0 || guard.Count() > 5 {
					t.Errorf("%v are broken after %d panics, want %s", broken, guard.Count(), who)
				}
				if n := len(view.take()); n < 500 {
					t.Errorf("%d packets of another publisher came, want 600", n)
				}
			})
		})
	}
}

// silent is a writer.
type silent struct{}

func (silent) WriteRTP(_ *rtp.Header, payload []byte) (int, error) { return len(payload), nil }

// TestATaskThatBreaksIsGivenUp, and the room goes on.
func TestATaskThatBreaksIsGivenUp(t *testing.T) {
	guard := panics.New()
	onStage(t, Config{Panics: guard}, func(st *stage) {
		st.room.post(func() { panic("of a test") })
		st.camera("alice", "", 180)
		if states := st.room.States(); len(states["alice"].Layers) != 1 || guard.Count() != 1 {
			t.Errorf("the room has %+v after %d panics", states, guard.Count())
		}
	})
}
