package forward

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// slowWriter takes so long for each packet, as on a machine that gives the process little time, and notes how old packets are when they leave.
type slowWriter struct {
	takes *atomic.Int64
	mu    sync.Mutex
	ages  []time.Duration
	left  []uint16 // sequence numbers
}

func (w *slowWriter) WriteRTP(h *rtp.Header, payload []byte) (int, error) {
	if takes := w.takes.Load(); takes > 0 {
		<-time.After(time.Duration(takes))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := int64(binary.BigEndian.Uint64(payload[len(payload)-8:]))
	w.ages = append(w.ages, time.Duration(time.Now().UnixNano()-at))
	w.left = append(w.left, h.SequenceNumber)
	return 12 + len(payload), nil
}

func (w *slowWriter) percentile(of float64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.ages)
	return w.ages[int(of*float64(len(w.ages)-1))]
}

func (w *slowWriter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.left)
}

func stamped(payload []byte) []byte {
	binary.BigEndian.PutUint64(payload[len(payload)-8:], uint64(time.Now().UnixNano()))
	return payload
}

// TestAStarvedRoomDeliversNothingOld: the process gets a third of the time that it needs. Sound arrives in time, pictures are left out up to a
// keyframe, and once there is time again everything goes on.
func TestAStarvedRoomDeliversNothingOld(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		st.room.turn.slots = -1
		var takes atomic.Int64
		sound, sight := &slowWriter{takes: &takes}, &slowWriter{takes: &takes}
		st.room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindAudio, Writer: sound, SSRC: 1, Codecs: []Codec{opus}}).Ready()
		st.room.AddSlot(SlotConfig{Peer: "bob", Mid: "2", Kind: KindVideo, Writer: sight, SSRC: 2, Codecs: []Codec{vp8}}).Ready()
		alice := st.camera("alice", "", 180)
		mic := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus})
		synctest.Wait()
		said, asked := uint16(0), 0
		// Each 20 ms a packet of sound, and a picture of 16 packets.
		second := func() {
			for range 50 {
				said++
				st.push(mic, rtp.Header{Version: 2, Marker: true, PayloadType: opus.PayloadType, SequenceNumber: said, Timestamp: 960 * uint32(said)}, stamped(make([]byte, 40)))
				key := alice.asked() != asked
				asked = alice.asked()
				for i := range 16 {
					st.push(alice.layer, rtp.Header{
						Version: 2, Marker: i == 15, PayloadType: vp8.PayloadType, SequenceNumber: alice.sequence, Timestamp: alice.timestamp,
					}, stamped(vp8Payload(key, i == 0, alice.pictureID, alice.tl0, 180, 0, 100)))
					alice.sequence++
				}
				alice.next()
				<-time.After(20 * time.Millisecond)
			}
		}
		second()
		before := sight.count()
		if got := st.room.Stats().Drops.Total(); got != 0 || before < 700 {
			t.Fatalf("%d packets dropped and %d sent before the room was starved", got, before)
		}
		takes.Store(int64(4 * time.Millisecond))
		for range 10 {
			second()
		}
		if sound.count() < 10*50 || sight.count()-before < 200 {
			t.Errorf("%d packets of sound and %d of pictures in 10 s", sound.count(), sight.count()-before)
		}
		for name, w := range map[string]*slowWriter{"sound": sound, "pictures": sight} {
			if p99 := w.percentile(0.99); p99 > 300*time.Millisecond {
				t.Errorf("99 of 100 packets of %s are delivered within %v, want 300 ms", name, p99)
			}
		}
		if st.room.Stats().Drops.Late == 0 {
			t.Error("nothing was left out")
		}
		takes.Store(0)
		second()
		second()
		before = sight.count()
		second()
		if got := sight.count() - before; got != 50*16 {
			t.Errorf("%d packets of pictures a second once there is time again, want %d", got, 50*16)
		}
		for i := 1; i < sight.count(); i++ {
			if sight.left[i] != sight.left[i-1]+1 {
				t.Fatalf("the number %d follows %d", sight.left[i], sight.left[i-1])
			}
		}
	})
}

// TestAPauseDropsNothing: the process stood for a second, and has time again.
func TestAPauseDropsNothing(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		bob.slot.Ready()
		alice.frame(true, 2)
		bob.take()
		st.room.post(func() { <-time.After(time.Second) })
		for range 10 {
			alice.send(false, 2, 100)
		}
		st.pass(2 * time.Second)
		if got := bob.take(); len(got) != 20 || st.room.Stats().Drops.Total() != 0 {
			t.Errorf("%d packets after the pause, %d dropped, want 20 and none", len(got), st.room.Stats().Drops.Total())
		}
	})
}
