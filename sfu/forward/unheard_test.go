package forward

import (
	"testing"
	"time"
)

// TestSoundThatNobodyWantsTakesNoSlot: a view may leave a sound out, and take it up again.
func TestSoundThatNobodyWantsTakesNoSlot(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		for _, mid := range []string{"1", "2"} {
			st.slot("bob", mid, KindAudio).slot.Ready()
		}
		st.microphone("a")
		st.microphone("b")
		st.shows("bob", "a", "b")
		st.room.SetView("bob", []Want{{Peer: "a", Source: SourceMicrophone}})
		st.pass(time.Second)
		st.shows("bob", "", "b")
		st.room.SetView("bob", nil)
		st.pass(time.Second)
		st.shows("bob", "a", "b")
	})
}
