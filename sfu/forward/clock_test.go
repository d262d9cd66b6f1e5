package forward

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"

	"github.com/pion/rtp"
)

// byHand is a room whose loop is the test: packets arrive when it says, also by a wall clock that somebody has set. A bubble's times
// have no monotonic part.
type byHand struct {
	t    *testing.T
	room *Room
}

func newByHand(t *testing.T) byHand {
	h := byHand{t: t, room: NewRoom(Config{}, slog.New(slog.DiscardHandler))}
	h.room.turn.slots = -1
	return h
}

func (h byHand) settle() {
	for len(h.room.tasks) > 0 {
		h.room.handleTasks(<-h.room.tasks)
	}
}

func (h byHand) slot(mid string, kind Kind, codec Codec) *screenful {
	v := &screenful{}
	v.slot = h.room.AddSlot(SlotConfig{Peer: "bob", Mid: mid, Kind: kind, Writer: v, SSRC: 4711, Codecs: []Codec{codec}})
	v.slot.Ready()
	h.settle()
	return v
}

func (h byHand) layer(source Source, rid string, codec Codec) *Layer {
	l := h.room.AddLayer(LayerConfig{Peer: "alice", Source: source, Kind: source.Kind(), RID: rid, Codec: codec})
	h.settle()
	return l
}

// push lets a packet arrive: sound, or a keyframe of one packet.
func (h byHand) push(l *Layer, sequence uint16, timestamp uint32, arrived time.Time) {
	h.t.Helper()
	payload := []byte("opus")
	if l.cfg.Kind == KindVideo {
		payload = vp8Payload(true, true, sequence, uint8(sequence), 180, 0, 40)
	}
	(&stage{t: h.t, room: h.room}).push(l, rtp.Header{
		Version: 2, Marker: true, PayloadType: l.cfg.Codec.PayloadType, SequenceNumber: sequence, Timestamp: timestamp,
	}, payload)
	p := h.room.nextPacket()
	p.arrived = arrived
	h.room.handle(p)
}

// report lets alice's sender report arrive. Her clock is the one that nobody sets.
func (h byHand) report(l *Layer, timestamp uint32, sent, arrived time.Time) {
	l.SenderReport(rtptime.NTP(sent), timestamp, arrived)
	h.settle()
}

func wallSteps() []time.Duration { return []time.Duration{3 * time.Second, -3 * time.Second} }

// TestASetWallClockKeepsPictureAndSoundTogether: the wall clock is set when the sound's last report came before and the picture's after it.
// The slots' reports go on in time, and what was sampled together stays together.
func TestASetWallClockKeepsPictureAndSoundTogether(t *testing.T) {
	for _, step := range wallSteps() {
		t.Run(step.String(), func(t *testing.T) {
			h := newByHand(t)
			sound, sight := h.slot("1", KindAudio, opus), h.slot("2", KindVideo, vp8)
			mic, cam := h.layer(SourceMicrophone, "", opus), h.layer(SourceCamera, "", vp8)
			begun := time.Now()
			for _, l := range []*Layer{mic, cam} {
				h.report(l, 1000, begun, begun)
				h.push(l, 1, 1000, begun)
			}
			before := sound.slot.senderReport(begun)
			later := testkit.WithWallMoved(t, begun.Add(time.Second), step)
			h.report(cam, 91_000, begun.Add(time.Second), later)
			first := func(v *screenful, rate uint32) (sampled, ntp float64) { // in seconds
				packets := v.take()
				if len(packets) != 1 {
					t.Fatalf("%d packets were forwarded, want 1", len(packets))
				}
				r := v.slot.senderReport(later)
				ntp = float64(r.NTPTime) / (1 << 32)
				return ntp + float64(int32(packets[0].Timestamp-r.RTPTime))/float64(rate), ntp
			}
			soundAt, now := first(sound, 48000)
			sightAt, _ := first(sight, 90000)
			if went := now - float64(before.NTPTime)/(1<<32); went < 0.99 || went > 1.01 {
				t.Errorf("between two reports time goes by %.2f s, want 1 s", went)
			}
			if apart := soundAt - sightAt; apart < -0.01 || apart > 0.01 {
				t.Errorf("sound and picture of one instant are told to be apart by %.2f s", apart)
			}
		})
	}
}

// TestASetWallClockIsNoJumpOfTimestamps: a layer takes over after the wall clock was set.
func TestASetWallClockIsNoJumpOfTimestamps(t *testing.T) {
	for _, step := range wallSteps() {
		t.Run(step.String(), func(t *testing.T) {
			h := newByHand(t)
			sight := h.slot("2", KindVideo, vp8)
			low, high := h.layer(SourceCamera, "q", vp8), h.layer(SourceCamera, "f", vp8)
			begun := time.Now()
			h.push(low, 1, 0, begun)
			h.push(high, 1, 0, begun)
			for i := range uint16(21) { // 2 s
				ticks, after := uint32(i)*9000, time.Duration(i)*100*time.Millisecond
				arrived := begun.Add(after)
				if i > 0 {
					arrived = testkit.WithWallMoved(t, arrived, step)
				}
				if i%10 == 0 {
					h.report(low, ticks, begun.Add(after), arrived)
					h.report(high, ticks, begun.Add(after), arrived)
				}
				if i == 20 {
					sight.slot.setTarget(high, arrived)
				}
				h.push(low, 2+i, ticks, arrived)
				h.push(high, 2+i, ticks, arrived)
			}
			packets := sight.take()
			if n := len(packets); n != 23 {
				t.Fatalf("%d packets were forwarded, want 23", n)
			}
			if jump := packets[22].Timestamp - packets[21].Timestamp; jump > 9000 {
				t.Errorf("the other layer begins %d ticks later, want the same moment", jump)
			}
		})
	}
}

// TestASetWallClockIsNoRoundTrip: a report on what we sent comes after the wall clock was set.
func TestASetWallClockIsNoRoundTrip(t *testing.T) {
	for _, step := range wallSteps() {
		r := NewRoom(Config{}, slog.New(slog.DiscardHandler))
		sent := time.Now()
		arrived := testkit.WithWallMoved(t, sent.Add(150*time.Millisecond), step)
		rtt, ok := r.RoundTrip(arrived, uint32(rtptime.NTP(r.wall.At(sent))>>16), 65536/10) // 0.1 s at the client
		if !ok || (rtt-50*time.Millisecond).Abs() > time.Millisecond {
			t.Errorf("a step of %v makes the round trip %v (%v), want 50 ms", step, rtt, ok)
		}
	}
}
