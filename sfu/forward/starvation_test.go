package forward

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hunger collects what a room says of slots without a picture.
type hunger struct {
	mu   sync.Mutex
	told []Starved
	log  bytes.Buffer
}

func (h *hunger) config() Config {
	return Config{OnStarved: func(s Starved) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.told = append(h.told, s)
	}}
}

func (h *hunger) all() []Starved {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told
}

// TestASlotWithoutAKeyframeFallsToAnotherLayer: a layer that comes and makes no keyframe is passed over.
func TestASlotWithoutAKeyframeFallsToAnotherLayer(t *testing.T) {
	var h hunger
	onStage(t, h.config(), func(st *stage) {
		alice := st.simulcast("alice")
		view := st.slot("bob", "1", KindVideo)
		view.slot.Ready()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		for range 150 { // 6 s of 40 ms; the highest layer does not hear
			alice.layers[0].burst(alice.layers[0].asked() > 0, 1)
			alice.layers[1].burst(alice.layers[1].asked() > 0, 3)
			alice.layers[2].burst(false, 10)
			st.pass(40 * time.Millisecond)
		}
		if n := len(view.take()); n < 100 {
			t.Errorf("%d packets in 6 s, though two layers could be shown", n)
		}
		told := h.all()
		if len(told) != 1 || told[0] != (Starved{Subscriber: "bob", Mid: "1", Publisher: "alice", Source: SourceCamera, Heard: true}) {
			t.Errorf("told %+v", told)
		}
	})
}

// TestASlotWithoutAPictureIsToldOf: a publisher of whom nothing comes is told of every 5 s and logged once, one who is muted or
// hidden is not.
func TestASlotWithoutAPictureIsToldOf(t *testing.T) {
	var h hunger
	onStage(t, h.config(), func(st *stage) {
		st.room.log = slog.New(slog.NewTextHandler(&h.log, nil))
		view := st.slot("bob", "1", KindVideo)
		view.slot.Ready()
		alice := st.camera("alice", "", 180)
		st.room.SetMuted("alice", SourceCamera, true)
		st.pass(20 * time.Second)
		st.room.SetMuted("alice", SourceCamera, false)
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera}})
		st.pass(20 * time.Second)
		if told := h.all(); len(told) != 0 {
			t.Fatalf("told of what is muted or hidden: %+v", told)
		}
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
		st.pass(1900 * time.Millisecond)
		if told := h.all(); len(told) != 0 {
			t.Fatalf("told before 2 s: %+v", told)
		}
		st.pass(12 * time.Second)
		told := h.all()
		if len(told) != 3 || told[0].Heard || told[0].Publisher != "alice" {
			t.Errorf("told %+v, want three times in 14 s of a publisher who is not heard", told)
		}
		asked := alice.asked()
		st.pass(16 * time.Second)
		if n := alice.asked() - asked; n < 8 || n > 12 {
			t.Errorf("%d requests in 16 s, want one in 1.6 s", n)
		}
		alice.frame(true, 1)
		if len(view.take()) == 0 {
			t.Error("nothing is sent when the keyframe comes")
		}
		st.pass(time.Second)
		synctest.Wait()
		if n := strings.Count(h.log.String(), "a slot has no picture"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, h.log.String())
		}
	})
}
