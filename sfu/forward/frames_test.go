package forward

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

type openBatcher struct{}

func (openBatcher) Begin() {}
func (openBatcher) End()   {}

// TestPacketsOfAFrameAreMadeEqual where little is missing, and only where packets leave together. The last one may be shorter.
func TestPacketsOfAFrameAreMadeEqual(t *testing.T) {
	for _, c := range []struct {
		batchers []Batcher
		payloads []int
		padding  []int
	}{
		{[]Batcher{openBatcher{}}, []int{1000, 1001, 1001, 1000}, []int{1, 0, 0, 0}},
		{[]Batcher{openBatcher{}}, []int{1000, 1000, 1000, 400}, []int{0, 0, 0, 0}},
		{[]Batcher{openBatcher{}}, []int{1000, 1000, 1001}, []int{1, 1, 0}},
		{[]Batcher{openBatcher{}}, []int{1000 - equalBytes - 1, 1000 - equalBytes, 1000, 999}, []int{0, equalBytes, 0, 0}},
		{nil, []int{1000, 1001, 1001, 1000}, []int{0, 0, 0, 0}},
	} {
		onStage(t, Config{Batchers: c.batchers}, func(st *stage) {
			alice := st.camera("alice", "", 180)
			view := st.slot("bob", "1", KindVideo)
			view.slot.Ready()
			alice.burst(true, 1)
			synctest.Wait()
			view.take()
			for i, size := range c.payloads {
				st.push(alice.layer, rtp.Header{
					Version: 2, Marker: i == len(c.payloads)-1, PayloadType: vp8.PayloadType, SequenceNumber: alice.sequence, Timestamp: alice.timestamp, SSRC: 1,
				}, vp8Payload(false, i == 0, alice.pictureID, alice.tl0, 180, 1, size))
				alice.sequence++
			}
			synctest.Wait()
			var padding []int
			for i, p := range view.take() {
				padding = append(padding, int(p.Header.PaddingSize))
				if p.Padding != (p.Header.PaddingSize > 0) || len(p.Payload) != c.payloads[i] {
					t.Errorf("packet %d has %d bytes, padding %v of %d", i, len(p.Payload), p.Padding, p.Header.PaddingSize)
				}
			}
			if !slices.Equal(padding, c.padding) {
				t.Errorf("payloads of %v got a padding of %v, want %v", c.payloads, padding, c.padding)
			}
		})
	}
}

// TestARoomRestsWhenNobodyWaits: it ticks at the slow rate, and at the fast one while a keyframe is waited for.
func TestARoomRestsWhenNobodyWaits(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		every := func() (d time.Duration) {
			done := make(chan struct{})
			st.room.post(func() { d = st.room.tickEvery(); close(done) })
			<-done
			return d
		}
		if d := every(); d != idleInterval {
			t.Errorf("a tick every %v in a room without publishers, want %v", d, idleInterval)
		}
		st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus})
		st.pass(idleInterval)
		if d := every(); d != soundInterval {
			t.Errorf("a tick every %v in a room without pictures, want %v", d, soundInterval)
		}
		alice := st.camera("alice", "", 180)
		view := st.slot("bob", "1", KindVideo)
		view.slot.Ready()
		st.pass(idleInterval)
		if d := every(); d != tickInterval {
			t.Errorf("a tick every %v while a keyframe is waited for, want %v", d, tickInterval)
		}
		alice.frame(true, 2)
		st.pass(time.Second)
		if d := every(); d != calmInterval {
			t.Errorf("a tick every %v when nobody waits, want %v", d, calmInterval)
		}
		// A request that is kept is made when it may be, not a slow tick later.
		view.slot.KeyframeRequested()
		synctest.Wait()
		asked := alice.asked()
		st.pass(10 * time.Millisecond)
		view.slot.KeyframeRequested()
		st.pass(defaultMinPLIInterval - 10*time.Millisecond + tickInterval)
		if n := alice.asked(); n != asked+1 {
			t.Errorf("%d requests after the interval, want 1", n-asked)
		}
	})
}
