package forward

import (
	"slices"
	"testing"
	"time"
)

func TestTakeOverKeepsTheTable(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		table := []Entry{
			{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera},
			{Mid: "b", Kind: KindVideo, Peer: "bob", Source: SourceCamera}, // oneself: not believed
			{Mid: "c", Kind: KindVideo, Peer: "alice", Source: SourceCamera},
		}
		st.room.SetTable("bob", table)
		for _, mid := range []string{"a", "b", "c"} {
			st.slot("bob", mid, KindVideo).slot.Ready()
		}
		st.shows("bob", "zoe", "", "alice")
		st.camera("alice", "", 180)
		st.camera("carl", "", 180)
		st.shows("bob", "zoe", "carl", "alice")
		st.camera("emma", "", 180)
		st.shows("bob", "emma", "carl", "alice") // zoe is not here yet, and the place is needed
		st.room.RemovePeer("emma")
		st.shows("bob", "", "carl", "alice")
	})
}

func TestExpectedPeersAreAwaitedForAWhile(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.room.SetTable("bob", []Entry{{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera}})
		st.slot("bob", "a", KindVideo)
		st.pass(defaultHoldTable - time.Second)
		st.shows("bob", "zoe")
		st.pass(2 * time.Second)
		st.shows("bob", "")
		st.room.SetTable("bob", []Entry{{Mid: "a", Kind: KindVideo, Peer: "zoe", Source: SourceCamera}})
		st.shows("bob", "zoe")
		st.room.RemovePeer("zoe")
		st.shows("bob", "")
	})
}

func TestReplacedConnectionKeepsTheTable(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		first, second := st.slot("bob", "a", KindVideo), st.slot("bob", "b", KindVideo)
		st.camera("alice", "", 180)
		carl := st.camera("carl", "", 180)
		st.shows("bob", "alice", "carl")
		first.slot.Close()
		second.slot.Close()
		st.shows("bob")
		st.slot("bob", "b", KindVideo)
		st.slot("bob", "a", KindVideo)
		st.shows("bob", "carl", "alice")
		carl.layer.Close()
		st.shows("bob", "carl", "alice")
		again := st.camera("carl", "", 180)
		st.shows("bob", "carl", "alice")
		again.layer.Close()
		st.pass(holdGone + time.Second)
		st.shows("bob", "", "alice")
	})
}

func TestHiddenSendsNothing(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		alice := st.camera("alice", "", 180)
		alice.frame(true, 1)
		before := bob.take()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera}})
		st.shows("bob", "alice")
		for range 20 {
			alice.frame(false, 1)
		}
		if n := len(bob.take()); n != 0 {
			t.Fatalf("%d packets of what is hidden", n)
		}
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
		alice.frame(false, 1)
		alice.frame(true, 1)
		st.stream(append(before, bob.take()...))
	})
}

func TestCodecTheViewerLacks(t *testing.T) {
	var told []Starved
	onStage(t, Config{OnStarved: func(s Starved) { told = append(told, s) }}, func(st *stage) {
		st.slot("bob", "1", KindVideo).slot.Ready()
		st.room.AddLayer(LayerConfig{
			Peer: "alice", Source: SourceCamera, Kind: KindVideo,
			Codec: Codec{MimeType: "video/H264", Fmtp: "profile-level-id=42e01f;packetization-mode=1", PayloadType: 102},
		})
		st.shows("bob", "")
		st.pass(12 * time.Second)
		if want := (Starved{Subscriber: "bob", Publisher: "alice", Source: SourceCamera, Heard: true, LacksCodec: true}); len(told) < 2 || len(told) > 3 || told[0] != want {
			t.Errorf("told %v, want %v once in five seconds", told, want)
		}
		carol := st.slot("carol", "1", KindVideo)
		carol.slot.Ready()
		st.pass(time.Second)
		for _, peer := range []PeerID{"bob", "carol"} {
			if lacks := st.room.Lacks(peer); !slices.Equal(lacks, []Lack{{"alice", SourceCamera, "H264"}}) {
				t.Errorf("%s lacks %v", peer, lacks)
			}
		}
		st.mu.Lock()
		before := st.tables
		st.mu.Unlock()
		st.room.SetMuted("alice", SourceCamera, true)
		st.pass(time.Second)
		st.room.SetMuted("alice", SourceCamera, false)
		st.pass(time.Second)
		st.camera("alice", "", 180).frame(true, 1) // as it was asked to
		st.pass(time.Second)
		st.shows("bob", "alice")
		if lacks := st.room.Lacks("bob"); lacks != nil {
			t.Errorf("bob lacks %v after all", lacks)
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.tables-before < 2*3 {
			t.Errorf("told of %d times, want three times each", st.tables-before)
		}
	})
}

// TestLayerReplacesItsPredecessor: a publisher that comes back on another
// connection is one publisher, not two layers.
func TestLayerReplacesItsPredecessor(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		old := st.camera("alice", "", 180)
		old.frame(true, 1)
		before := bob.take()
		again := st.camera("alice", "", 180)
		old.frame(true, 1)
		if got := bob.take(); len(got) != 0 {
			t.Fatal("the old connection's picture goes on")
		}
		again.frame(true, 1)
		old.layer.Close() // late, and no matter
		again.frame(false, 1)
		st.shows("bob", "alice")
		got := bob.take()
		if len(got) != 2 {
			t.Fatal(len(got))
		}
		st.stream(append(before, got...))
	})
}
