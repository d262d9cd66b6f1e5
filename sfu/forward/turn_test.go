package forward

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/pion/rtp"
)

// voices is a room of sound whose loop is the test.
type voices struct {
	room  *Room
	layer *Layer
	heard []*screenful
	said  uint16
}

func newVoices(t *testing.T, listeners int) *voices {
	t.Helper()
	v := &voices{room: NewRoom(Config{Batchers: []Batcher{noBatch{}}}, slog.New(slog.DiscardHandler))}
	v.layer = v.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus})
	for i := range listeners {
		s := &screenful{}
		s.slot = v.room.AddSlot(SlotConfig{Peer: PeerID(fmt.Sprint(i)), Mid: "1", Kind: KindAudio, Writer: s, SSRC: 1, Codecs: []Codec{opus}})
		s.slot.Ready()
		v.heard = append(v.heard, s)
	}
	byHand{t: t, room: v.room}.settle()
	return v
}

type noBatch struct{}

func (noBatch) Begin() {}
func (noBatch) End()   {}

func (v *voices) say(t *testing.T) {
	t.Helper()
	v.said++
	(&stage{t: t, room: v.room}).push(v.layer, rtp.Header{
		Version: 2, PayloadType: opus.PayloadType, SequenceNumber: v.said, Timestamp: 960 * uint32(v.said),
	}, []byte("opus"))
}

// counts returns how many packets each listener got since the last call.
func (v *voices) counts() (n []int) {
	for _, s := range v.heard {
		n = append(n, len(s.take()))
	}
	return n
}

// TestWhoForwardsSound: the reader for few listeners, else the loop.
func TestWhoForwardsSound(t *testing.T) {
	for listeners := range hereSlots + 2 {
		v := newVoices(t, listeners)
		v.say(t)
		if waits := len(v.room.packets) == 1; waits != (listeners > hereSlots) {
			t.Errorf("%d listeners: the packet waits for the loop: %v", listeners, waits)
		}
		if len(v.room.packets) > 0 {
			v.room.handleBurst(<-v.room.packets)
		}
		for _, n := range v.counts() {
			if n != 1 {
				t.Errorf("%d listeners: one got %d packets, want 1", listeners, n)
			}
		}
	}
}

// TestSoundStaysInOrder: once a packet waits for the loop, those that follow it do, too.
func TestSoundStaysInOrder(t *testing.T) {
	v := newVoices(t, 1)
	v.room.turn.take()
	v.say(t)
	v.room.turn.giveBack()
	v.say(t)
	if n := len(v.room.packets); n != 2 {
		t.Fatalf("%d packets wait for the loop, want 2", n)
	}
	v.room.handleBurst(<-v.room.packets)
	v.say(t)
	if n := v.counts(); len(v.room.packets) != 0 || n[0] != 3 {
		t.Errorf("%d packets wait for the loop, and %v were sent, want none and 3", len(v.room.packets), n)
	}
}

// TestNothingIsForwardedAfterTheLoop has ended.
func TestNothingIsForwardedAfterTheLoop(t *testing.T) {
	v := newVoices(t, 1)
	v.room.release()
	v.say(t)
	if n := v.counts(); n[0] != 0 {
		t.Errorf("%d packets were sent after the loop had ended", n[0])
	}
}

// TestAReaderSurvivesSoundThatBreaksTheRoom: the track is dropped, and the turn is given back.
func TestAReaderSurvivesSoundThatBreaksTheRoom(t *testing.T) {
	v := newVoices(t, 0)
	v.room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindAudio, Writer: landmine{}, SSRC: 1, Codecs: []Codec{opus}}).Ready()
	byHand{t: t, room: v.room}.settle()
	v.say(t)
	if !v.room.turn.tryTake() {
		t.Fatal("the turn was not given back")
	}
	if n := len(v.room.members.layers); n != 0 || len(v.room.packets) != 0 {
		t.Errorf("%d layers and %d waiting packets are left, want none", n, len(v.room.packets))
	}
}

// TestReadersAndTheLoopTakeTurns: what several readers push while the loop changes the room arrives completely and in order.
func TestReadersAndTheLoopTakeTurns(t *testing.T) {
	const packets, people = 3000, 3
	room := NewRoom(Config{QueuePackets: people * packets, Batchers: []Batcher{noBatch{}}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running, reading sync.WaitGroup
	running.Go(func() { _ = room.Run(ctx) })
	layers, heard := make([]*Layer, people), make([]*screenful, people)
	for i := range people {
		peer, s := PeerID(fmt.Sprint(i)), &screenful{}
		layers[i] = room.AddLayer(LayerConfig{Peer: peer, Source: SourceMicrophone, Kind: KindAudio, Codec: opus})
		s.slot = room.AddSlot(SlotConfig{Peer: peer, Mid: "1", Kind: KindAudio, Writer: s, SSRC: 1, Codecs: []Codec{opus}})
		s.slot.Ready()
		heard[i] = s
	}
	room.States() // Everything is taken in.
	for _, l := range layers {
		reading.Go(func() {
			v := &voices{room: room, layer: l}
			for range packets {
				for len(room.packets) > burstPackets { // or the loop would leave out what has waited for long
					runtime.Gosched()
				}
				v.say(t)
			}
		})
	}
	for i := range packets / 10 {
		room.SetMuted("nobody", SourceCamera, i%2 == 0)
	}
	reading.Wait()
	room.States() // No task waits, and what was queued before it may still be handled.
	for len(room.packets) > 0 {
		room.States()
	}
	cancel()
	running.Wait()
	for i, s := range heard {
		got := s.take()
		if len(got) != packets {
			t.Errorf("listener %d got %d packets, want %d", i, len(got), packets)
		}
		for j := 1; j < len(got); j++ {
			if got[j].SequenceNumber != got[j-1].SequenceNumber+1 {
				t.Fatalf("listener %d got number %d after %d", i, got[j].SequenceNumber, got[j-1].SequenceNumber)
			}
		}
	}
}
