package forward

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSoundPassesPicturesOnANarrowPath: a keyframe leaves about as fast as the path carries it, whole and in order, and sound at once. On a
// path that is not known to be narrow nothing waits.
func TestSoundPassesPicturesOnANarrowPath(t *testing.T) {
	const packets, budget = 40, 1_000_000 // 40 packets of 1,000 bytes take 320 ms and a little
	for _, narrow := range []bool{true, false} {
		onStage(t, Config{}, func(st *stage) {
			picture, sound := st.slot("bob", "1", KindVideo), st.slot("bob", "2", KindAudio)
			picture.slot.Ready()
			sound.slot.Ready()
			alice, voice := st.camera("alice", "", 180), st.microphone("alice")
			alice.frame(true, 1)
			st.pass(2 * time.Second)
			if narrow {
				st.room.SetBudget("bob", budget)
				st.pass(2 * calmInterval)
			}
			picture.take()
			alice.burst(true, packets)
			var left []int // packets of the picture that have left when each packet of sound does
			for range 20 {
				voice.say(30)
				synctest.Wait()
				if n := len(sound.take()); n != 1 {
					t.Fatalf("narrow %t: %d packets of sound left at once, want 1", narrow, n)
				}
				left = append(left, len(picture.peek()))
				st.pass(20 * time.Millisecond)
			}
			got := picture.take()
			st.stream(got)
			if len(got) != packets {
				t.Errorf("narrow %t: %d packets of the picture left, want %d", narrow, len(got), packets)
			}
			switch {
			case !narrow && left[0] != packets:
				t.Errorf("%v packets left on a wide path, want all at once", left)
			case narrow && (left[0] > 4 || left[5] > 25 || left[14] != packets):
				t.Errorf("%v packets had left each 20 ms, want them spread over about 220 ms", left)
			}
		})
	}
}

// TestWhatWaitsIsForgottenWithItsSlot and leaves at once when the path is wide again.
func TestWhatWaitsIsForgottenWithItsSlot(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob, dan := st.slot("bob", "1", KindVideo), st.slot("dan", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		for peer, v := range map[PeerID]*screenful{"bob": bob, "dan": dan} {
			v.slot.Ready()
			st.room.SetBudget(peer, 1_000_000)
		}
		alice.frame(true, 1)
		st.pass(time.Second)
		bob.take()
		dan.take()
		alice.burst(true, 40)
		synctest.Wait()
		st.room.RemovePeer("bob")
		st.room.SetBudget("dan", 0)
		st.pass(2 * calmInterval)
		if n := len(dan.take()); n != 40 {
			t.Errorf("%d packets left on the path that became wide, want 40", n)
		}
		if n := len(bob.take()); n > 4 {
			t.Errorf("%d packets were sent to somebody who has left", n)
		}
	})
}
