package forward

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// redPayload puts sound behind the sound before it, as RFC 2198 has it.
func redPayload(payloadType uint8, newest []byte, older ...[]byte) []byte {
	var headers, blocks []byte
	for i, b := range older {
		offset := 960 * (len(older) - i)
		headers = append(headers, 0x80|payloadType, byte(offset>>6), byte(offset<<2)|byte(len(b)>>8), byte(len(b)))
		blocks = append(blocks, b...)
	}
	return append(append(append(headers, payloadType), blocks...), newest...)
}

// TestRedundantSound: who has negotiated it gets it under the own payload types, who has not gets plain Opus in one stream with what came
// plain.
func TestRedundantSound(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus, REDPayloadType: 63})
		theirs := Codec{MimeType: "audio/opus", ClockRate: 48000, PayloadType: 109}
		red := Codec{MimeType: "audio/red", Fmtp: "109/109", ClockRate: 48000, PayloadType: 64}
		views := map[bool]*screenful{false: {}, true: {}}
		for redundant, v := range views {
			codecs := []Codec{theirs}
			peer := PeerID("plain")
			if redundant {
				codecs, peer = []Codec{red, theirs}, "redundant"
			}
			v.slot = st.room.AddSlot(SlotConfig{Peer: peer, Mid: "1", Kind: KindAudio, Writer: v, SSRC: 1, Codecs: codecs})
			v.slot.Ready()
		}
		synctest.Wait()
		send := func(sequence uint16, payloadType uint8, payload []byte) {
			st.push(alice, rtp.Header{Version: 2, PayloadType: payloadType, SequenceNumber: sequence, Timestamp: 960 * uint32(sequence)}, payload)
			synctest.Wait()
		}
		send(1, 111, []byte("one"))
		send(2, 63, redPayload(111, []byte("two"), []byte("one")))
		send(3, 63, redPayload(112, []byte("another codec")))
		send(3, 63, []byte{0x80 | 111, 0, 0xFF, 0xFF, 111, 1})
		send(3, 63, redPayload(111, []byte("three")))
		want := map[bool][]rtp.Packet{
			false: {plain(109, "one"), plain(109, "two"), plain(109, "three")},
			true: {
				plain(109, "one"), plain(64, string(redPayload(109, []byte("two"), []byte("one")))), plain(64, string(redPayload(109, []byte("three")))),
			},
		}
		for redundant, v := range views {
			got := v.take()
			if len(got) != len(want[redundant]) {
				t.Fatalf("redundant %t: %d packets, want %d", redundant, len(got), len(want[redundant]))
			}
			for i, p := range got {
				if w := want[redundant][i]; p.PayloadType != w.PayloadType || !bytes.Equal(p.Payload, w.Payload) || p.SequenceNumber != got[0].SequenceNumber+uint16(i) {
					t.Errorf("redundant %t: packet %d is %v %q, want type %d %q", redundant, i, p.Header, p.Payload, w.PayloadType, w.Payload)
				}
			}
		}
	})
}

func plain(payloadType uint8, payload string) rtp.Packet {
	return rtp.Packet{Header: rtp.Header{PayloadType: payloadType}, Payload: []byte(payload)}
}

// TestRedundancyIsForLossyPaths: a slot that asks for lost packets gets it while it does, and not on a path that is known to be narrow.
func TestRedundancyIsForLossyPaths(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus, REDPayloadType: 63})
		bob := &screenful{}
		bob.slot = st.room.AddSlot(SlotConfig{
			Peer: "bob", Mid: "1", Kind: KindAudio, Writer: bob, SSRC: 1, Codecs: []Codec{opus, {MimeType: "audio/red", PayloadType: 63}}, Repeat: bob.repeat,
		})
		bob.slot.Ready()
		sequence := uint16(0)
		send := func(lossy bool, want uint8) {
			t.Helper()
			for i := range 100 {
				sequence++
				st.push(alice, rtp.Header{Version: 2, PayloadType: 63, SequenceNumber: sequence, Timestamp: 960 * uint32(sequence)}, redPayload(111, []byte("two"), []byte("one")))
				st.pass(20 * time.Millisecond)
				if lossy && i%10 == 0 {
					sent := bob.peek()
					bob.slot.NACK([]uint16{sent[len(sent)-1].SequenceNumber})
				}
			}
			if sent := bob.take(); sent[len(sent)-1].PayloadType != want {
				t.Fatalf("packets of type %d, want %d", sent[len(sent)-1].PayloadType, want)
			}
		}
		send(false, 111)
		send(true, 63)
		st.room.SetBudget("bob", 300_000)
		send(false, 111)
		st.room.SetBudget("bob", 0)
		send(false, 63)
		st.pass(redundantFor)
		send(false, 111)
	})
}

// TestRedundancyCostsANarrowPathNothing: of sound that comes redundantly a narrow path is sent, and charged, what it is without.
func TestRedundancyCostsANarrowPathNothing(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus, REDPayloadType: 63})
		sound := bytes.Repeat([]byte{1}, 100)
		for sequence := range uint16(500) {
			st.push(alice, rtp.Header{Version: 2, PayloadType: 63, SequenceNumber: sequence, Timestamp: 960 * uint32(sequence)}, redPayload(111, sound, sound))
			st.pass(20 * time.Millisecond)
		}
		// 100 bytes of sound and 56 of headers, 50 times a second.
		if got := st.room.States()["alice"].Layers[0].BitsPerSecond; got < 60_000 || got > 65_000 {
			t.Errorf("it is charged %d bit/s, want 62400", got)
		}
	})
}
