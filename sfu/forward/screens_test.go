package forward

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// screen is somebody who shares one with its sound.
func (st *stage) screen(peer PeerID) {
	for source, codec := range map[Source]Codec{SourceScreen: vp8, SourceScreenAudio: opus} {
		st.room.AddLayer(LayerConfig{Peer: peer, Source: source, Kind: source.Kind(), Codec: codec})
	}
	synctest.Wait()
}

// TestAScreenIsHeardAmongManySpeakers, and many screens leave half of the slots to people.
func TestAScreenIsHeardAmongManySpeakers(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		for _, mid := range []string{"1", "2", "3", "4"} {
			st.slot("bob", mid, KindAudio).slot.Ready()
		}
		heard := func(source Source) (n int) {
			synctest.Wait()
			for _, e := range st.room.Table("bob") {
				if e.Peer != "" && e.Source == source {
					n++
				}
			}
			return n
		}
		var all []*microphone
		for n := range 6 {
			all = append(all, st.microphone(PeerID(fmt.Sprint("p", n))))
		}
		talk := func() {
			for range 75 {
				for _, m := range all {
					m.say(25)
				}
				st.pass(20 * time.Millisecond)
			}
		}
		talk()
		st.screen("p0")
		talk()
		if n := heard(SourceScreenAudio); n != 1 {
			t.Fatalf("the screen is heard %d times among six speakers: %+v", n, st.room.Table("bob"))
		}
		for n := range 3 {
			st.screen(PeerID(fmt.Sprint("p", n+1)))
		}
		talk()
		if screens, people := heard(SourceScreenAudio), heard(SourceMicrophone); screens != 2 || people != 2 {
			t.Errorf("%d screens and %d people are heard in four slots", screens, people)
		}
		st.room.SetMuted("p0", SourceScreenAudio, true)
		st.room.SetMuted("p1", SourceScreenAudio, true)
		talk()
		for _, e := range st.room.Table("bob") {
			if e.Source == SourceScreenAudio && (e.Peer == "p0" || e.Peer == "p1") {
				t.Errorf("a muted screen has a slot that others need: %+v", e)
			}
		}
	})
}

// TestAScreenIsHeardBesideItsPicture, in whatever order they come: browsers play what is in one stream in step.
func TestAScreenIsHeardBesideItsPicture(t *testing.T) {
	for _, order := range [][]Source{{SourceScreen, SourceScreenAudio}, {SourceScreenAudio, SourceScreen}} {
		onStage(t, Config{}, func(st *stage) {
			st.pairedScreen("zoe", 3, 5)
			st.microphone("ann")
			st.camera("ann", "", 180)
			layers := map[Source]LayerConfig{
				SourceScreen:      {Peer: "ann", Source: SourceScreen, Kind: KindVideo, Codec: vp8},
				SourceScreenAudio: {Peer: "ann", Source: SourceScreenAudio, Kind: KindAudio, Codec: opus},
			}
			st.room.AddLayer(layers[order[0]])
			st.room.AddLayer(layers[order[1]])
			synctest.Wait()
			mids := map[Source]string{}
			for _, e := range st.room.Table("zoe") {
				if e.Peer == "ann" {
					mids[e.Source] = e.Mid[1:]
				}
			}
			// The picture that came first has taken a slot without sound beside it.
			together := mids[SourceScreen] == mids[SourceScreenAudio]
			if len(mids) != 4 || mids[SourceCamera] != mids[SourceMicrophone] || slices.Index(order, SourceScreenAudio) == 0 && !together {
				t.Errorf("%v: %v", order, mids)
			}
		})
	}
}
