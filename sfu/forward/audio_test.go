package forward

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const levelID = 1

// microphone is a synthetic publisher of sound.
type microphone struct {
	st        *stage
	layer     *Layer
	sequence  uint16
	timestamp uint32
}

func (st *stage) microphone(peer PeerID) *microphone {
	m := &microphone{st: st, sequence: 9, timestamp: 4_294_000_000}
	m.layer = st.room.AddLayer(LayerConfig{Peer: peer, Source: SourceMicrophone, Kind: KindAudio, Codec: opus, AudioLevelExtensionID: levelID})
	synctest.Wait()
	return m
}

// say sends 20 ms of sound; time is let go by the caller.
func (m *microphone) say(level uint8) {
	h := rtp.Header{Version: 2, PayloadType: opus.PayloadType, SequenceNumber: m.sequence, Timestamp: m.timestamp}
	if err := h.SetExtension(levelID, []byte{level}); err != nil {
		m.st.t.Fatal(err)
	}
	m.st.push(m.layer, h, []byte("opus"))
	m.sequence++
	m.timestamp += 960
}

func TestSpeakersTakeTheScarceSlots(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		v := []*screenful{st.slot("bob", "1", KindAudio), st.slot("bob", "2", KindAudio)}
		for _, s := range v {
			s.slot.Ready()
		}
		names := []PeerID{"a", "b", "c", "d"}
		var all []*microphone
		for _, name := range names {
			all = append(all, st.microphone(name))
		}
		st.shows("bob", "a", "b")
		talk := func(who ...PeerID) {
			for range 75 {
				for i, m := range all {
					level := uint8(90)
					if slices.Contains(who, names[i]) {
						level = 25
					}
					m.say(level)
				}
				st.pass(20 * time.Millisecond)
			}
		}
		talk("a")
		st.shows("bob", "a", "b")
		talk("d")
		st.shows("bob", "a", "d")
		talk("a", "b", "c", "d") // whoever has a slot and speaks is not interrupted
		st.shows("bob", "a", "d")
		st.mu.Lock()
		if len(st.speakers) != 4 {
			t.Error(st.speakers)
		}
		st.mu.Unlock()
		st.room.SetMuted("d", SourceMicrophone, true)
		talk("c")
		if got := st.room.Table("bob"); !slices.ContainsFunc(got, func(e Entry) bool { return e.Peer == "c" }) {
			t.Fatal("the speaker is not heard:", got)
		}
		for _, s := range v {
			packets := s.take()
			for i := 1; i < len(packets); i++ {
				if packets[i].SequenceNumber != packets[i-1].SequenceNumber+1 || int32(packets[i].Timestamp-packets[i-1].Timestamp) <= 0 {
					t.Fatal("not one stream at", i)
				}
				if packets[i].Extension {
					t.Fatal("a publisher's header extension came through")
				}
			}
			if len(packets) < 250 {
				t.Fatal(len(packets))
			}
		}
	})
}

// TestReportsKeepPictureAndSoundTogether: a picture and a sound sampled at the
// same instant are told to have been, whatever the publisher's clock says.
func TestReportsKeepPictureAndSoundTogether(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		sound, sight := st.slot("bob", "1", KindAudio), st.slot("bob", "2", KindVideo)
		sound.slot.Ready()
		sight.slot.Ready()
		mic, cam := st.microphone("alice"), st.camera("alice", "", 180)
		const delay = 40 * time.Millisecond // the picture takes longer on its way
		var pictures []uint32
		for i := range 90 {
			theirs := time.Now().Add(-1000 * time.Hour)
			if i%30 == 10 {
				mic.layer.SenderReport(rtptime.NTP(theirs), mic.timestamp, time.Now())
				cam.layer.SenderReport(rtptime.NTP(theirs), cam.timestamp, time.Now())
			}
			mic.say(50)
			pictures = append(pictures, cam.timestamp)
			mic.timestamp += 33*48 - 960
			st.pass(33 * time.Millisecond)
			if late := i - int(delay/(33*time.Millisecond)); late >= 0 {
				st.push(cam.layer, rtp.Header{Version: 2, Marker: true, PayloadType: 96, SequenceNumber: cam.sequence, Timestamp: pictures[late]},
					vp8Payload(late == 0, true, cam.pictureID, cam.tl0, 180, 0, 40))
				cam.sequence++
				cam.pictureID++
				cam.tl0++
			}
			cam.timestamp += 2970
		}
		last := func(v *screenful) (ntp float64, rtp uint32, packets []rtp.Packet) {
			reports := v.takeReports()
			if len(reports) < 2 || len(reports) > 4 {
				t.Fatalf("%d reports in 3 s", len(reports))
			}
			r := reports[len(reports)-1]
			if r.SSRC != 4711 || r.PacketCount == 0 || r.OctetCount == 0 {
				t.Fatal(r)
			}
			return float64(r.NTPTime) / (1 << 32), r.RTPTime, v.take()
		}
		soundNTP, soundRTP, sounds := last(sound)
		sightNTP, sightRTP, sights := last(sight)
		soundAt := soundNTP + float64(int32(sounds[80].Timestamp-soundRTP))/48000
		sightAt := sightNTP + float64(int32(sights[80].Timestamp-sightRTP))/90000
		if apart := time.Duration((soundAt - sightAt) * float64(time.Second)); apart.Abs() > 2*time.Millisecond {
			t.Fatal("sound and picture of one instant are told to be apart by", apart)
		}
	})
}

// TestReportsOfAPeerAreOneCompound: all that is sent to a subscriber is reported on together, each with its name.
func TestReportsOfAPeerAreOneCompound(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		var compounds [][]rtcp.Packet // written by the loop, read while it rests
		path := &pathStub{}
		for ssrc, kind := range map[uint32]Kind{1: KindAudio, 2: KindVideo} {
			st.room.AddSlot(SlotConfig{
				Peer: "bob", Mid: string(kind), Kind: kind, Writer: &screenful{}, SSRC: ssrc, Codecs: []Codec{vp8, opus}, Path: path, TransportSequenceID: 3,
				WriteRTCP: func(packets []rtcp.Packet) error {
					compounds = append(compounds, packets)
					return nil
				},
			}).Ready()
		}
		voice, alice := st.microphone("alice"), st.camera("alice", "", 180)
		alice.frame(true, 1)
		for range 100 {
			voice.say(30)
			alice.frame(false, 1)
		}
		if n := len(compounds); n < 3 || n > 5 {
			t.Errorf("%d compounds in 3.3 s, want one a second and one at the beginning", n)
		}
		for _, packets := range compounds[1:] {
			reported := map[uint32]bool{}
			for _, p := range packets {
				if report, ok := p.(*rtcp.SenderReport); ok {
					reported[report.SSRC] = true
				}
			}
			names, ok := packets[len(packets)-1].(*rtcp.SourceDescription)
			if !ok || len(reported) != 2 || len(names.Chunks) != 2 || !reported[names.Chunks[0].Source] || names.Chunks[0].Items[0].Text != CNAME {
				t.Fatalf("a compound of %v", packets)
			}
			if _, err := rtcp.Marshal(packets); err != nil {
				t.Fatal(err)
			}
		}
	})
}
