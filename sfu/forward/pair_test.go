package forward

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// pairedScreen gives a subscriber audio slots a0, a1... and video slots v0, v1..., of which those with one number share a stream.
func (st *stage) pairedScreen(peer PeerID, sounds, pictures int) {
	add := func(kind Kind, n int) {
		v := &screenful{}
		st.room.AddSlot(SlotConfig{
			Peer: peer, Mid: fmt.Sprint(string(kind[0]), n), Kind: kind, Writer: v, SSRC: 1, Stream: fmt.Sprint("slots-", n), Codecs: []Codec{vp8, opus},
		}).Ready()
	}
	for n := range sounds {
		add(KindAudio, n)
	}
	for n := range pictures {
		add(KindVideo, n)
	}
	synctest.Wait()
}

// places says where somebody is heard and seen, as mids.
func (st *stage) places(subscriber, peer PeerID) (heard, seen string) {
	for _, e := range st.room.Table(subscriber) {
		switch {
		case e.Peer != peer:
		case e.Source == SourceMicrophone:
			heard = e.Mid
		case e.Source == SourceCamera:
			seen = e.Mid
		}
	}
	return heard, seen
}

func (st *stage) paired(subscriber PeerID, peers ...PeerID) {
	st.t.Helper()
	synctest.Wait()
	for _, p := range peers {
		if heard, seen := st.places(subscriber, p); heard == "" || seen == "" || heard[1:] != seen[1:] {
			st.t.Errorf("%s is heard in %q and seen in %q: %+v", p, heard, seen, st.room.Table(subscriber))
		}
	}
}

// TestWhoIsSeenIsHeardBeside, in whatever order sound and pictures come and people go.
func TestWhoIsSeenIsHeardBeside(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.pairedScreen("zoe", 3, 5)
		st.room.AddLayer(LayerConfig{Peer: "ann", Source: SourceScreen, Kind: KindVideo, Codec: vp8})
		st.microphone("bob")
		st.camera("cid", "", 180)
		st.camera("bob", "", 180)
		ann := st.microphone("ann")
		st.microphone("cid")
		st.camera("ann", "", 180)
		st.paired("zoe", "ann", "bob", "cid")
		for _, e := range st.room.Table("zoe") {
			if e.Source == SourceScreen && e.Mid < "v3" {
				t.Errorf("the screen took slot %s, which has sound beside it", e.Mid)
			}
		}
		ann.layer.Close()
		st.room.RemovePeer("bob")
		st.camera("dan", "", 180)
		st.microphone("dan")
		st.microphone("ann")
		st.paired("zoe", "ann", "cid", "dan")
	})
}

// TestNobodyIsMovedWhileSpeaking: who takes a place far from the camera is brought beside it once both are silent.
func TestNobodyIsMovedWhileSpeaking(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.pairedScreen("zoe", 2, 4)
		for _, p := range []PeerID{"cid", "ann", "bob"} {
			st.camera(p, "", 180)
		}
		bob, ann, cid := st.microphone("bob"), st.microphone("ann"), st.microphone("cid")
		st.paired("zoe", "ann")
		say := func(levels ...uint8) {
			for range 100 {
				for i, m := range []*microphone{bob, ann, cid} {
					m.say(levels[i])
				}
				st.pass(20 * time.Millisecond)
			}
		}
		say(20, 90, 90)
		say(20, 90, 20) // Ann has been silent for longest.
		for who, want := range map[PeerID]string{"bob": "a0", "ann": "", "cid": "a1"} {
			if heard, _ := st.places("zoe", who); heard != want {
				t.Fatalf("%s is heard in %q, want %q: both speak", who, heard, want)
			}
		}
		say(90, 90, 90)
		st.paired("zoe", "cid")
	})
}
