package forward

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
	"pgregory.net/rapid"
)

// checkSame fails the test unless two packets are the same to the last byte.
func checkSame(t *testing.T, a, b *rtp.Packet) {
	t.Helper()
	first, err := a.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("packet %d is\n%x\nand was\n%x", a.SequenceNumber, first, second)
	}
}

// once is a PacketWriter that knows under which numbers it has been given packets, roll-overs included. A number is half of a nonce:
// a second packet under it, if it is not the first, would give away the key stream.
type once struct {
	highest map[uint32]uint64
	used    map[[2]uint64]bool
	fault   error
}

func (o *once) WriteRTP(h *rtp.Header, payload []byte) (int, error) {
	at, begun := o.highest[h.SSRC]
	if !begun {
		at = 1<<16 | uint64(h.SequenceNumber)
	}
	at += uint64(int64(int16(h.SequenceNumber - uint16(at))))
	o.highest[h.SSRC] = max(at, o.highest[h.SSRC])
	key := [2]uint64{uint64(h.SSRC), at}
	if o.used[key] {
		o.fault = fmt.Errorf("number %d of stream %d is sealed twice", at, h.SSRC)
	}
	o.used[key] = true
	return 12 + len(payload), nil
}

// TestNoNumberIsSealedTwice, whatever comes, is switched and is asked for again.
func TestNoNumberIsSealedTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// The scenario is drawn first: rapid gives up by panicking, which must not happen in the bubble.
		rtx := rapid.Bool().Draw(rt, "rtx")
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) [3]int {
			return [3]int{rapid.IntRange(0, 7).Draw(rt, "what"), rapid.IntRange(0, 40).Draw(rt, "back"), rapid.IntRange(0, 1).Draw(rt, "layer")}
		}), 1, 60).Draw(rt, "steps")
		var fault error
		onStage(t, Config{}, func(st *stage) {
			o := &once{highest: map[uint32]uint64{}, used: map[[2]uint64]bool{}}
			slot := onceSlot(st, o, rtx)
			layers := []*camera{st.camera("alice", "q", 180), st.camera("alice", "h", 360)}
			for _, step := range steps {
				play(st, slot, layers[step[2]], step[0], step[1])
			}
			st.pass(time.Second)
			fault = o.fault
		})
		if fault != nil {
			rt.Fatal(fault)
		}
	})
}

func onceSlot(st *stage, o *once, rtx bool) *Slot {
	cfg := SlotConfig{
		Peer: "bob", Mid: "1", Kind: KindVideo, Writer: o, SSRC: 4711, Codecs: []Codec{vp8}, Path: &pathStub{}, TransportSequenceID: 3,
		Repeat: func(uint16) (int, error) { return 1, nil },
	}
	if rtx {
		cfg.RTXSSRC = 4712
	}
	slot := st.room.AddSlot(cfg)
	slot.Ready()
	synctest.Wait()
	return slot
}

// play is one thing that happens to the slot.
func play(st *stage, slot *Slot, c *camera, what, back int) {
	switch what {
	case 0, 1:
		c.frame(what == 0, 1+back/10)
	case 2: // late, lost for ever or twice
		c.sequence -= uint16(back)
		c.frame(false, 1)
	case 3:
		c.sequence += uint16(back)
	case 4:
		var numbers []uint16
		for n := range uint16(back) {
			numbers = append(numbers, uint16(slot.rewriter.Highest)-n)
		}
		slot.NACK(numbers)
		synctest.Wait()
	case 5:
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 16 * back, Height: 9 * back}})
	case 6:
		st.room.SetBudget("bob", uint64(back)*10_000)
	case 7:
		slot.Ready()
	}
	st.pass(time.Duration(back) * 10 * time.Millisecond)
}

// A cut inside one described stream forgets what can be sent again, and not which numbers were used.
func TestNoNumberIsSealedTwiceAfterACut(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.scalable("alice", l3t3Key)
		o := &once{highest: map[uint32]uint64{}, used: map[[2]uint64]bool{}}
		slot := st.room.AddSlot(SlotConfig{
			Peer: "bob", Mid: "1", Kind: KindVideo, Writer: o, SSRC: 4711, RTXSSRC: 4712,
			Codecs: []Codec{av1}, DescriptorID: receiverID, Path: &pathStub{}, TransportSequenceID: 3,
		})
		st.look("bob", 720)
		slot.Ready()
		alice.run(3 * time.Second)
		last := alice.unit(false)
		repeat := func() {
			for _, p := range last {
				st.push(alice.layer, p.Header, p.Payload)
			}
		}
		repeat()
		st.pass(100 * time.Millisecond)
		st.room.SetBudget("bob", 250_000)
		st.pass(200*time.Millisecond + cacheAge + time.Second) // no cache of the layer has them any more
		repeat()
		st.pass(500 * time.Millisecond)
		if o.fault != nil {
			t.Error(o.fault)
		}
	})
}
