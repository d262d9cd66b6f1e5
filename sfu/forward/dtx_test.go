package forward

import (
	"testing"
	"time"
)

// TestAPauseOfOpusIsNoDeath: in silence Opus sends a packet each 400 ms (DTX). The layer lives, all is forwarded under the timestamps of its
// publisher, nobody speaks, and who begins to speak is noticed as soon as ever.
func TestAPauseOfOpusIsNoDeath(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		const pause = 400 * time.Millisecond
		bob := st.slot("bob", "1", KindAudio)
		bob.slot.Ready()
		alice := st.microphone("alice")
		say := func(level uint8, every time.Duration, packets int) {
			for range packets {
				alice.say(level)
				alice.timestamp += 48*uint32(every.Milliseconds()) - 960
				st.pass(every)
				if !alice.layer.alive(time.Now()) {
					t.Fatal("the layer counts as dead")
				}
			}
		}
		speaking := func() bool {
			st.mu.Lock()
			defer st.mu.Unlock()
			return len(st.speakers) > 0
		}
		say(20, 20*time.Millisecond, 50)
		if !speaking() {
			t.Fatal("alice is not noticed")
		}
		say(127, pause, 15)
		if speaking() {
			t.Error("alice speaks in silence")
		}
		st.shows("bob", "alice")
		sent := bob.take()
		if len(sent) != 65 {
			t.Fatalf("%d packets, want 65", len(sent))
		}
		if step := sent[64].Timestamp - sent[63].Timestamp; step != 48*400 {
			t.Errorf("a pause took %d ticks, want %d", step, 48*400)
		}
		say(20, 20*time.Millisecond, 25)
		if !speaking() {
			t.Error("alice is not noticed within 500 ms after a pause")
		}
	})
}
