package forward

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

var h264Codec = Codec{MimeType: "video/H264", Fmtp: "packetization-mode=1;profile-level-id=42e01f", ClockRate: 90000, PayloadType: 102, RTXPayloadType: 103}

// encoder is a publisher of one layer that sends packets as it is told.
type encoder struct {
	st        *stage
	layer     *Layer
	codec     Codec
	sequence  uint16
	timestamp uint32
}

func (st *stage) encoder(peer PeerID, codec Codec) *encoder {
	e := &encoder{st: st, codec: codec, sequence: uint16(1000 * len(peer)), timestamp: 5000}
	e.layer = st.room.AddLayer(LayerConfig{Peer: peer, Source: SourceCamera, Kind: KindVideo, Codec: codec, SendPLI: func() {}})
	synctest.Wait()
	return e
}

// picture sends one picture. A packet whose place in late is set comes after the others; an empty one is lost.
func (e *encoder) picture(packets [][]byte, late int) {
	push := func(i int) {
		e.st.push(e.layer, rtp.Header{
			Version: 2, Marker: i == len(packets)-1, PayloadType: e.codec.PayloadType, SequenceNumber: e.sequence + uint16(i), Timestamp: e.timestamp, SSRC: 1,
		}, packets[i])
	}
	for i, p := range packets {
		if i != late && len(p) > 0 {
			push(i)
		}
	}
	if late >= 0 {
		synctest.Wait()
		push(late)
	}
	e.sequence += uint16(len(packets))
	e.timestamp += 3000
	synctest.Wait()
}

func (st *stage) viewer(peer PeerID, codec Codec) *screenful {
	v := &screenful{}
	v.slot = st.room.AddSlot(SlotConfig{Peer: peer, Mid: "1", Kind: KindVideo, Writer: v, SSRC: 4711, RTXSSRC: 4712, Codecs: []Codec{codec}})
	v.slot.Ready()
	synctest.Wait()
	return v
}

const inOrder = -1

const naluSTAPA = 24

var (
	parameterSets = []byte{0x78, 0, 4, 0x67, 0x42, 0xe0, 0x1f, 0, 4, 0x68, 0xce, 0x3c, 0x80}
	// keyframes by who packetizes so. Each begins with its parameter sets.
	h264Pictures = map[string][][]byte{
		"libwebrtc":   {parameterSets, {0x7c, 0x85, 1}, {0x7c, 0x45, 2}},
		"single NALs": {{0x67, 0x42, 0xe0, 0x1f}, {0x68, 0xce, 0x3c, 0x80}, {0x65, 9}},
		"two slices":  {parameterSets, {0x65, 1}, {0x65, 2}},
	}
)

// TestANewcomerGetsTheWholeKeyframe: who comes within 320 ms of a keyframe gets it from the cache, all of it.
func TestANewcomerGetsTheWholeKeyframe(t *testing.T) {
	scenario := func(codec Codec, packets [][]byte) func(*stage) {
		return func(st *stage) {
			st.encoder("alice", codec).picture(packets, inOrder)
			st.pass(100 * time.Millisecond)
			got := st.viewer("carol", codec).take()
			if len(got) != len(packets) || string(got[0].Payload) != string(packets[0]) {
				st.t.Errorf("the newcomer got %d of %d packets", len(got), len(packets))
			}
		}
	}
	for name, packets := range h264Pictures {
		t.Run(name, func(t *testing.T) { onStage(t, Config{}, scenario(h264Codec, packets)) })
	}
	t.Run("AV1 with two spatial layers", func(t *testing.T) { // each begins a coded video sequence
		onStage(t, Config{}, scenario(av1, [][]byte{{0x18, 0x0A, 1}, {0x90, 1}, {0x18, 0x0A, 2}}))
	})
}

// TestAKeyframeIsAskedForWhileANewcomerConnects: it is in the cache when the newcomer's DTLS is up, and is not asked for again.
func TestAKeyframeIsAskedForWhileANewcomerConnects(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		asked := 0
		alice := &encoder{st: st, codec: h264Codec, sequence: 1000, timestamp: 5000}
		alice.layer = st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: h264Codec, SendPLI: func() { asked++ }})
		alice.picture(h264Pictures["single NALs"], inOrder)
		st.pass(time.Second)
		bob := &screenful{}
		bob.slot = st.room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindVideo, Writer: bob, SSRC: 4711, RTXSSRC: 4712, Codecs: []Codec{h264Codec}})
		st.pass(tickInterval)
		if asked != 1 {
			t.Fatalf("asked for %d keyframes before DTLS is up, want 1", asked)
		}
		alice.picture(h264Pictures["libwebrtc"], inOrder)
		if early := bob.take(); len(early) > 0 {
			t.Errorf("%d packets were sent before DTLS is up", len(early))
		}
		st.pass(100 * time.Millisecond)
		bob.slot.Ready()
		synctest.Wait()
		if got := bob.take(); len(got) != len(h264Pictures["libwebrtc"]) || asked != 1 {
			t.Errorf("%d packets of the keyframe at once, after %d requests, want %d after 1", len(got), asked, len(h264Pictures["libwebrtc"]))
		}
	})
}

// TestAnotherPersonsPictureBringsItsParameterSets: the decoder has those of the former person.
func TestAnotherPersonsPictureBringsItsParameterSets(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.viewer("bob", h264Codec)
		alice, carl := st.encoder("alice", h264Codec), st.encoder("carl", h264Codec)
		look := func(at PeerID) {
			st.room.SetView("bob", []Want{{Peer: at, Source: SourceCamera, Width: 320, Height: 180}})
			synctest.Wait()
		}
		look("alice")
		alice.picture(h264Pictures["libwebrtc"], inOrder)
		st.pass(time.Second)
		carl.picture(h264Pictures["libwebrtc"], inOrder)
		st.pass(100 * time.Millisecond)
		bob.take()
		look("carl")
		st.pass(20 * time.Millisecond)
		if got := bob.take(); len(got) != 3 || got[0].Payload[0]&0x1F != naluSTAPA {
			t.Errorf("%d packets of carl's keyframe, want 3 that begin with the parameter sets", len(got))
		}
	})
}

// TestAPictureWaitsForItsParameterSets: the parameter sets of an IDR picture come late, or never.
func TestAPictureWaitsForItsParameterSets(t *testing.T) {
	whole := h264Pictures["two slices"]
	lost := [][]byte{nil, whole[1], whole[2]}
	t.Run("late", func(t *testing.T) {
		onStage(t, Config{}, func(st *stage) {
			bob, alice := st.viewer("bob", h264Codec), st.encoder("alice", h264Codec)
			alice.picture(whole, 0)
			st.pass(20 * time.Millisecond)
			if got := bob.take(); len(got) != 3 || got[0].Payload[0]&0x1F != naluSTAPA {
				t.Errorf("%d packets, want 3 that begin with the parameter sets", len(got))
			}
			if got := st.viewer("carol", h264Codec).take(); len(got) != 3 || got[0].Payload[0]&0x1F != naluSTAPA {
				t.Errorf("a newcomer got %d packets, want 3 that begin with the parameter sets", len(got))
			}
		})
	})
	t.Run("lost", func(t *testing.T) {
		onStage(t, Config{}, func(st *stage) {
			bob, alice := st.viewer("bob", h264Codec), st.encoder("alice", h264Codec)
			alice.picture(lost, inOrder)
			if got := bob.take(); len(got) != 0 {
				t.Errorf("%d packets of a picture that cannot be decoded", len(got))
			}
			st.pass(time.Second)
			alice.picture(whole, inOrder)
			if got := bob.take(); len(got) != 3 {
				t.Errorf("%d packets of the next keyframe, want 3", len(got))
			}
		})
	})
	t.Run("never sent", func(t *testing.T) { // they stand in the publisher's SDP
		onStage(t, Config{}, func(st *stage) {
			bob, alice := st.viewer("bob", h264Codec), st.encoder("alice", h264Codec)
			for range 3 {
				alice.picture([][]byte{{0x65, 1}, {0x65, 2}}, inOrder)
				st.pass(time.Second)
			}
			if got := bob.take(); len(got) != 4 {
				t.Errorf("%d packets of three keyframes, want all from the second on", len(got))
			}
		})
	})
}

// TestOneViewerAsksWithoutEnd: one of two viewers asks for keyframes for a minute, in each way that there is, and the publisher answers each request.
// The other viewer gets few of them.
func TestOneViewerAsksWithoutEnd(t *testing.T) {
	wants := func(width, height int) []Want {
		return []Want{{Peer: "alice", Source: SourceCamera, Width: width, Height: height}}
	}
	for name, ask := range map[string]func(st *stage, bob *screenful, turn int){
		"by PLI":     func(_ *stage, bob *screenful, _ int) { bob.slot.KeyframeRequested() },
		"by refresh": func(st *stage, _ *screenful, _ int) { st.room.Refresh("bob", []string{"1"}) },
		"by flipping its view": func(st *stage, _ *screenful, turn int) {
			st.room.SetView("bob", [][]Want{wants(320, 180), nil}[turn/25%2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				bob, carol := st.slot("bob", "1", KindVideo), st.slot("carol", "1", KindVideo)
				alice := st.camera("alice", "", 180)
				bob.slot.Ready()
				carol.slot.Ready()
				synctest.Wait()
				asked := 0
				for turn := range 30 * 60 {
					key := alice.asked() != asked
					asked = alice.asked()
					alice.send(key, 2, 100)
					for range 2 {
						ask(st, bob, turn)
						st.pass(17 * time.Millisecond)
					}
				}
				seen := 0
				for _, p := range carol.take() {
					if parseVP8(p.Payload).Keyframe {
						seen++
					}
				}
				if most := keyframeBurst + int(time.Minute/keyframeEvery) + 3; seen > most || seen == 0 {
					t.Errorf("the publisher was asked %d times in a minute, and the other viewer got %d keyframes, want %d at most", alice.asked(), seen, most)
				}
			})
		})
	}
}

// TestManyJoinInASecond: each of twenty who join within a second has the picture at once, also while somebody has asked for all keyframes that one may.
func TestManyJoinInASecond(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		bob.slot.Ready()
		synctest.Wait()
		asked := 0
		frame := func() {
			key := alice.asked() != asked
			asked = alice.asked()
			alice.frame(key, 2)
		}
		for range 600 {
			bob.slot.KeyframeRequested()
			frame()
		}
		for i := range 20 {
			who := st.slot(PeerID("guest"+string(rune('a'+i))), "1", KindVideo)
			who.slot.Ready()
			for range 12 { // a keyframe is made for some of them, at most each 320 ms
				if frame(); len(who.peek()) > 0 {
					break
				}
			}
			got := who.take()
			if len(got) == 0 || !parseVP8(got[0].Payload).Keyframe {
				t.Fatalf("guest %d has no picture after 400 ms", i)
			}
			st.pass(17 * time.Millisecond)
		}
	})
}

// TestAPublisherThatDoesNotAnswerIsAskedOn: as after a failover, when its first keyframe is lost.
func TestAPublisherThatDoesNotAnswerIsAskedOn(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		bob.slot.Ready()
		for range 300 { // 10 s
			alice.frame(false, 1)
		}
		if n := alice.asked(); n < 10 {
			t.Errorf("the publisher was asked %d times in 10 s, want every 0.4 to 1.6 s", n)
		}
	})
}
